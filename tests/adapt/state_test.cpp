#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "gala/adapt/state_file.h"
#include "gala/base/error.h"
#include "tests/adapt/toy.h"

namespace gala {

/// Without it, names of tests would hold addresses.
static void PrintTo(const MethodOptions& options, std::ostream* out) {
  *out << options.loss << " | " << options.select << " | " << options.optimizer;
}

namespace {

/// A file of this process alone: ctest runs several at once.
std::filesystem::path scratch(const std::string& name) {
  return std::filesystem::path(testing::TempDir()) /
         fmt::format("gala_state_{}_{}", ::getpid(), name);
}

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string trace_of(Adapter& adapter, int first, int last) {
  std::string trace;
  for (int i = first; i <= last; ++i) {
    for (const StepRecord& step : adapter.answer(toy_images(i)).steps) {
      trace += to_json(step, adapter.layers(), /*with_time=*/false).dump() + "\n";
    }
  }
  return trace;
}

class StateOf : public testing::TestWithParam<MethodOptions> {};

TEST_P(StateOf, GoesOnBitForBit) {
  auto straight_model = toy_model(1, "running:momentum=0.1"),
       first_model = toy_model(1, "running:momentum=0.1"),
       second_model = toy_model(1, "running:momentum=0.1");
  Adapter straight(*straight_model, GetParam());
  const std::string expected = trace_of(straight, 1, 40);

  const auto path = scratch("resume");
  std::string trace;
  {
    Adapter first(*first_model, GetParam());
    trace = trace_of(first, 1, 20);
    write_state(path, first.save());
  }
  Adapter second(*second_model, GetParam());
  second.load(read_state(path));
  trace += trace_of(second, 21, 40);
  EXPECT_EQ(trace, expected);

  const auto first_file = scratch("a"), second_file = scratch("b");
  write_state(first_file, straight.save());
  write_state(second_file, second.save());
  EXPECT_EQ(bytes_of(first_file), bytes_of(second_file));
}

INSTANTIATE_TEST_SUITE_P(
    EveryMethod, StateOf,
    testing::Values(
        MethodOptions{.loss = "entropy", .select = "gala:window=7"},
        MethodOptions{.loss = "shot", .select = "gala:anchor=previous,displacement=difference"},
        MethodOptions{.loss = "entropy",
                      .select = "gala:optimizer=reset",
                      .optimizer = "adam:moments=selected"},
        MethodOptions{.loss = "entropy", .select = "random", .seed = 5},
        MethodOptions{.loss = "entropy", .select = "auto_snr:definition=paper,threshold=0.3"},
        MethodOptions{
            .loss = "entropy",
            .select = "auto_rgn",
            .optimizer = "sgd:momentum=0.9,nesterov=yes",
            .guard = "rollback:to=healthy,horizon=8,every=2,diversity=1,displacement=0.01"}),
    [](const auto& one) { return fmt::format("Method{}", one.index); });

TEST(State, BelongsToOneModelAndOneMethod) {
  auto model = toy_model(), other_seed = toy_model(2), same = toy_model(), same_again = toy_model();
  const MethodOptions options{.loss = "entropy", .select = "gala"};
  Adapter adapter(*model, options);
  adapter.answer(toy_images(1));
  const State state = adapter.save();
  Adapter other_weights(*other_seed, options);
  EXPECT_THROW(other_weights.load(state), Error);
  Adapter other_method(*same, {.loss = "entropy", .select = "gala:window=5"});
  EXPECT_THROW(other_method.load(state), Error);
  Adapter other_partition(*same_again,
                          {.loss = "entropy", .select = "gala", .partition = Granularity::kTensor});
  EXPECT_THROW(other_partition.load(state), Error);
  auto in_shadow = toy_model(), in_light = toy_model(), moved = toy_model();
  MethodOptions beside = options;
  beside.shadow = true;
  Adapter shadow(*in_shadow, beside), light(*in_light, options), other_norm(*moved, options);
  EXPECT_THROW(light.load(shadow.save()), Error);
  EXPECT_THROW(shadow.load(light.save()), Error);
  moved->set_norm_mode(NormMode::parse("source"));
  EXPECT_THROW(other_norm.load(state), Error);
  auto rounded = toy_model(), brighter = toy_model();
  rounded->set_precision(Precision::kBf16);
  EXPECT_THROW(Adapter(*rounded, options).load(state), Error);
  Preprocessing other = brighter->preprocessing();
  other.mean[0] += 0.1;
  brighter->set_preprocessing(other);
  EXPECT_THROW(Adapter(*brighter, options).load(state), Error);
}

/// What the options name is not what is at work where parts were handed over.
TEST(State, OfPartsOfOnesOwnIsNotResumedByOthers) {
  const auto made = [](Model& model, std::unique_ptr<Loss> loss) {
    return std::make_unique<Adapter>(model, MethodOptions{},
                                     AdapterSetup{.parts = {.loss = std::move(loss)}});
  };
  auto model = toy_model(), twin = toy_model(), third = toy_model(), fourth = toy_model();
  const auto entropy = made(*model, make_loss("entropy"));
  entropy->answer(toy_images(1));
  const State state = entropy->save();
  EXPECT_THROW(Adapter(*twin, {}).load(state), Error) << "the options' own loss is another";
  EXPECT_THROW(made(*third, make_loss("shot"))->load(state), Error);
  EXPECT_NO_THROW(made(*fourth, make_loss("entropy"))->load(state));
}

TEST(StateFile, HoldsNamesThatAreNotUtf8) {
  const auto path = scratch("names");
  State state;
  state.values = {{"name", "caf\xe9.png"}, {"count", 3}};
  write_state(path, state);
  EXPECT_EQ(read_state(path).values.at("count").get<int>(), 3);
}

TEST(StateFile, IsTakenOnlyAsItWasWritten) {
  const auto path = scratch("checked");
  State state;
  state.values = {{"count", 3}};
  state.tensors = {{"a", at::arange(5, at::kFloat)}, {"b", at::ones({2, 2}, at::kLong)}};
  write_state(path, state);
  EXPECT_TRUE(read_state(path).tensors.at("a").equal(state.tensors.at("a")));
  const std::string whole = bytes_of(path);
  // One bit in the values, in a name, in a shape of the same size, in the data.
  const auto message_with = [&](const std::string& from, const std::string& to) {
    std::string bytes = whole;
    EXPECT_NE(bytes.find(from), std::string::npos) << from;
    bytes.replace(bytes.find(from), from.size(), to);
    std::ofstream(path, std::ios::binary) << bytes;
    try {
      read_state(path);
    } catch (const FormatError& error) {
      return std::string(error.what());
    }
    return "taken with " + to;
  };
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {R"(\"count\":3)", R"(\"count\":4)"},
           {R"("b":{)", R"("c":{)"},
           {"[2,2]", "[4,1]"},
           {"I64", "F64"},
           {std::string("\x00\x00\x80\x3f", 4), std::string("\x01\x00\x80\x3f", 4)}}) {
    EXPECT_NE(message_with(from, to).find("is not as it was saved"), std::string::npos) << to;
  }
  // What older versions wrote has none.
  EXPECT_NE(message_with("gala_checksum", "gala_checksim").find("older version"),
            std::string::npos);
}

TEST(State, ChangesNothingWhenItCannotBeUsed) {
  auto model = toy_model(), twin = toy_model();
  const MethodOptions options{.loss = "entropy", .select = "gala"};
  Adapter adapter(*model, options), saved(*twin, options);
  adapter.answer(toy_images(1));
  for (int i = 1; i <= 3; ++i) saved.answer(toy_images(i));
  const State before = adapter.save();
  for (const char* missing :
       {"moment2/fc.bias", "displacement/conv1.weight", "buffer/bn1.running_var"}) {
    State state = saved.save();
    ASSERT_EQ(state.tensors.erase(missing), 1u);
    EXPECT_THROW(adapter.load(state), Error);
    const State after = adapter.save();
    EXPECT_EQ(before.values, after.values);
    for (const auto& [name, tensor] : before.tensors) {
      EXPECT_TRUE(same_bytes(tensor, after.tensors.at(name))) << name;
    }
  }
}

TEST(State, OfOddValuesIsRefusedInWords) {
  auto model = toy_model();
  Adapter adapter(*model, {.loss = "entropy", .select = "gala"});
  adapter.answer(toy_images(1));
  const State whole = adapter.save();
  const auto refuses_with = [&](const auto& change) {
    State state = whole;
    change(state.values);
    try {
      adapter.load(state);
      ADD_FAILURE() << "was loaded: " << state.values.dump();
    } catch (const Error& problem) {
      for (const char* raw : {"json", "vector", "map::", "_M_", "std::", "c10"}) {
        EXPECT_EQ(std::string(problem.what()).find(raw), std::string::npos) << problem.what();
      }
    }
  };
  for (const char* name :
       {"settings", "fingerprint", "clock", "travelled", "guard", "stopped", "totals", "version"}) {
    refuses_with([&](nlohmann::json& values) { values.erase(name); });
    refuses_with([&](nlohmann::json& values) { values[name] = "odd"; });
    refuses_with([&](nlohmann::json& values) { values[name] = nlohmann::json::array(); });
  }
  EXPECT_NO_THROW(adapter.load(whole));
}

TEST(StateFile, IsRefusedWhenItIsSomethingElse) {
  const auto path = scratch("else");
  std::ofstream(path) << "not a state";
  EXPECT_THROW(read_state(path), FormatError);
  EXPECT_THROW(read_state(scratch("missing")), FormatError);
}

TEST(StateFile, DoesNotDependOnTheMemoryLayout) {
  auto model = toy_model(), channels_last = toy_model();
  for (Parameter& parameter : channels_last->parameters()) {
    if (parameter.value.dim() == 4) {
      parameter.value = parameter.value.contiguous(at::MemoryFormat::ChannelsLast);
    }
  }
  const MethodOptions options{.loss = "entropy", .select = "gala"};
  Adapter adapter(*model, options), other(*channels_last, options);
  for (int i = 1; i <= 3; ++i) adapter.answer(toy_images(i));
  other.load(adapter.save());
  write_state(scratch("contiguous"), adapter.save());
  write_state(scratch("channels_last"), other.save());
  EXPECT_EQ(bytes_of(scratch("contiguous")), bytes_of(scratch("channels_last")));
}

}  // namespace
}  // namespace gala
