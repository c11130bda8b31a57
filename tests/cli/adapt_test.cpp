#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "tests/cli/run_gala.h"

namespace gala::test {
namespace {

/// 24 labelled pictures, three batches.
class Adapt : public GalaProgram {
 protected:
  void SetUp() override {
    write_source_weights();
    write_pictures("x.npy", 24);
    write_labels("y.npy", 24);
  }

  Ending adapt(const std::string& flags) {
    const Ending ending = run(flags_ + flags);
    EXPECT_EQ(ending.code, 0) << flags << "\n" << ending.err;
    return ending;
  }
  std::vector<nlohmann::ordered_json> trace(const std::string& flags) {
    adapt(flags + " --trace t.jsonl");
    return read_json_lines("t.jsonl");
  }
  std::string predictions(const std::string& flags) {
    adapt(flags + " --predictions p.csv");
    return read("p.csv");
  }
  static std::vector<std::string> layer_names(const nlohmann::ordered_json& step) {
    std::vector<std::string> names;
    for (const auto& layer : step.at("layers")) names.push_back(layer.at("name"));
    return names;
  }

  const std::string flags_ =
      "adapt --weights source.safetensors --data arrays:images=x.npy,labels=y.npy --batch-size 8 ";
};

TEST_F(Adapt, SaysHowOftenAWindowTookALayerTwice) {
  // Three steps: the opening, and two choices.
  EXPECT_CONTAINS(adapt("--loss shot --select gala").out, " of 2 choices (");
  EXPECT_EQ(adapt("--loss shot --select random").out.find("repeats "), std::string::npos);
}

/// What the table of layers says of each, by its first column.
std::map<std::string, std::string> moved_column(const Ending& ending) {
  std::map<std::string, std::string> moved;
  const std::vector<std::string> lines = ending.out_lines();
  bool within = false;
  for (const std::string& line : lines) {
    const std::vector<std::string> cells = words(line);
    if (within && cells.size() == 4) moved[cells[0]] = cells[1];
    within = within || (cells.size() == 4 && cells[0] == "layer" && cells[1] == "moved");
  }
  return moved;
}

/// Layers that take a part of their update, or several times as much, are not left uncounted.
TEST_F(Adapt, CountsUpdatesByTheirScale) {
  for (const char* select : {"palm", "relative", "gala:window=2", "all"}) {
    const Ending ending = adapt(std::string("--loss entropy --trace t.jsonl --select ") + select);
    std::map<std::string, double> expected;
    for (const auto& step : read_json_lines("t.jsonl")) {
      for (const auto& layer : step.at("layers")) {
        expected[layer.at("name")] += layer.at("weight").get<double>();
      }
    }
    const auto moved = moved_column(ending);
    ASSERT_EQ(moved.size(), 8U) << select << "\n" << ending.out;
    double least_shown = std::numeric_limits<double>::infinity();
    for (const auto& [layer, text] : moved) {
      EXPECT_EQ(text, fmt::format("{:.4g}", expected.at(layer))) << select << ' ' << layer;
      EXPECT_NE(text, "0") << select << ' ' << layer;
      least_shown = std::min(least_shown, expected.at(layer));
    }
    for (const auto& [layer, weight] : expected) {
      EXPECT_TRUE(weight <= least_shown || moved.contains(layer)) << select << ' ' << layer;
    }
  }
}

class EveryLoss : public Adapt, public ::testing::WithParamInterface<const char*> {};

TEST_P(EveryLoss, RunsWithEverySelectorAndOptimizer) {
  const auto names = nlohmann::json::parse(run("list --json").out);
  for (const auto& selector : names.at("selectors")) {
    for (const auto& optimizer : names.at("optimizers")) {
      const std::string select = selector.at("name"), optimize = optimizer.at("name");
      const Ending ending = adapt(std::string("--loss ") + GetParam() + " --select " + select +
                                  " --optimizer " + optimize + " --deterministic");
      EXPECT_CONTAINS(ending.out, "answered   24 images in 3 batches, norm mode source");
      EXPECT_CONTAINS(ending.out, select == "none" ? "steps      0 " : "steps      3 ");
      EXPECT_CONTAINS(ending.out, "0 refused");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Losses, EveryLoss,
                         ::testing::Values("pseudo_label:beta=0.1", "shot:beta=0.1",
                                           "information_maximisation", "entropy"),
                         [](const auto& one) { return fmt::format("Loss{}", one.index); });

TEST_F(Adapt, EveryNormModeAnswersInItsOwnWay) {
  std::vector<std::string> answers;
  for (const char* mode : {"source", "batch", "blend:weight=0.25", "running:momentum=0.5"}) {
    const Ending ending = adapt(std::string("--select none --predictions p.csv --norm ") + mode);
    EXPECT_CONTAINS(ending.out, std::string("norm mode ") + mode);
    for (const std::string& other : answers) EXPECT_NE(other, read("p.csv")) << mode;
    answers.push_back(read("p.csv"));
  }
}

TEST_F(Adapt, PartitionAndPatternsSayWhatALayerIs) {
  const std::string all = "--loss entropy --select all ";
  EXPECT_EQ(trace(all)[0].at("layers").size(), 17U);  // 9 convolutions, 7 norms, fc
  EXPECT_EQ(trace(all + "--head freeze")[0].at("layers").size(), 16U);
  EXPECT_EQ(trace("--loss shot --select all")[0].at("layers").size(), 16U);
  EXPECT_EQ(trace("--loss shot --select all --head adapt")[0].at("layers").size(), 17U);
  EXPECT_EQ(layer_names(trace(all + "--partition block")[0]),
            (std::vector<std::string>{"block1", "block2", "block3"}));
  EXPECT_EQ(layer_names(trace(all + "--partition tensor --include fc bn1")[0]),
            (std::vector<std::string>{"bn1.weight", "bn1.bias", "fc.weight", "fc.bias"}));
  EXPECT_EQ(layer_names(trace(all + "--include block1.* --exclude *bn?")[0]),
            (std::vector<std::string>{"block1.layer.0.conv1", "block1.layer.0.conv2"}));
  for (const std::string& name : layer_names(trace("--loss entropy --select norm_affine")[0])) {
    EXPECT_CONTAINS(name, "bn");
  }
}

TEST_F(Adapt, FixedMovesTheNamedLayersAlone) {
  for (const auto& step : trace("--loss entropy --select fixed:layers=block2 --partition block")) {
    EXPECT_EQ(step.at("selected"), nlohmann::ordered_json::array({"block2"}));
  }
}

TEST_F(Adapt, InnerStepsAreStepsOfTheirOwn) {
  const auto steps = trace("--loss entropy --inner-steps 3");
  ASSERT_EQ(steps.size(), 9U);
  for (int i = 0; i < 9; ++i) {
    EXPECT_EQ(steps[static_cast<std::size_t>(i)].at("step"), i + 1);
    EXPECT_EQ(steps[static_cast<std::size_t>(i)].at("window_step"), i + 1);
    EXPECT_EQ(steps[static_cast<std::size_t>(i)].at("batch"), i / 3 + 1);
  }
}

TEST_F(Adapt, EveryOtherBatchOnRequest) {
  const auto steps = trace("--loss entropy --adapt-every 2");
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].at("batch"), 1);
  EXPECT_EQ(steps[1].at("batch"), 3);
}

TEST_F(Adapt, SaysWhenClassFoldersMakeBatchesOfOneClass) {
  for (int i = 0; i < 80; ++i) {
    write_png(fmt::format("photos/{}/{}.png", i / 8, 10 + i), static_cast<std::uint64_t>(i));
  }
  const std::string flags = "adapt --weights source.safetensors --data folder:path=photos";
  const Ending sorted = run(flags);
  EXPECT_EQ(sorted.code, 0) << sorted.err;
  EXPECT_CONTAINS(sorted.err, "come class after class");
  EXPECT_CONTAINS(sorted.err, "the stream single:order=shuffled mixes them");
  const Ending mixed = run(flags + " --stream single:order=shuffled");
  EXPECT_EQ(mixed.code, 0) << mixed.err;
  EXPECT_EQ(mixed.err.find("class after class"), std::string::npos) << mixed.err;
}

TEST_F(Adapt, EpisodicAnswersDoNotDependOnEarlierBatches) {
  const std::string method =
      "--loss entropy --select all --optimizer adam:rate=0.05 --predict after --trace t.jsonl "
      "--predictions p.csv --deterministic ";
  adapt(method + "--episodic");
  const auto steps = read_json_lines("t.jsonl");
  for (const auto& step : steps) EXPECT_EQ(step.at("window_step"), 1);
  // The first batch, answered three times over.
  const std::string bytes = read("x.npy");
  const std::size_t row = 32 * 32 * 3, header = bytes.size() - 24 * row;
  std::string repeated = bytes.substr(0, header);
  for (int i = 0; i < 3; ++i) repeated += bytes.substr(header, 8 * row);
  write("x.npy", repeated);
  adapt(method + "--episodic");
  const auto again = read_json_lines("t.jsonl");
  EXPECT_EQ(again[0].at("loss"), steps[0].at("loss"));
  EXPECT_EQ(again[1].at("loss"), again[0].at("loss"));
  EXPECT_EQ(again[2].at("loss"), again[0].at("loss"));
  adapt(method);
  const auto online = read_json_lines("t.jsonl");
  EXPECT_NE(online[1].at("loss"), online[0].at("loss"));
  EXPECT_CONTAINS(adapt("--episodic").err, "never chooses");
}

TEST_F(Adapt, PredictsBeforeOrAfterTheUpdate) {
  const std::string method =
      "--batch-size 24 --loss entropy --select all --optimizer sgd:rate=0.1 ";
  const std::string base =
      "adapt --weights source.safetensors --data arrays:images=x.npy,labels=y.npy ";
  ASSERT_EQ(run(base + "--batch-size 24 --select none --predictions source.csv").code, 0);
  ASSERT_EQ(run(base + method + "--predictions before.csv").code, 0);
  ASSERT_EQ(run(base + method + "--predict after --predictions after.csv").code, 0);
  EXPECT_EQ(read("before.csv"), read("source.csv"));
  EXPECT_NE(read("after.csv"), read("source.csv"));
}

TEST_F(Adapt, SavedWeightsAnswerAsTheAdaptedModelDid) {
  const std::string base =
      "adapt --data arrays:images=x.npy,labels=y.npy --batch-size 24 --deterministic ";
  ASSERT_EQ(run(base + "--weights source.safetensors --loss entropy --select all --predict after "
                       "--save-weights w.safetensors --predictions a.csv")
                .code,
            0);
  const Ending again = run(base + "--weights w.safetensors --select none --predictions b.csv");
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(read("a.csv"), read("b.csv"));
  EXPECT_FALSE(read("w.safetensors") == read("source.safetensors"));
  ASSERT_EQ(
      run(base + "--weights w.safetensors --select none --save-weights same.safetensors").code, 0);
  EXPECT_TRUE(read("w.safetensors") == read("same.safetensors"));
}

TEST_F(Adapt, ShadowAnswersFromTheSourceAndSavesWhatWasAdaptedBeside) {
  const std::string method =
      "--loss entropy --select all --optimizer adam:rate=0.1 --norm batch --deterministic ";
  const std::string source = predictions("--select none --deterministic");
  const Ending shadow = adapt(method +
                              "--shadow --predictions shadow.csv --trace shadow.jsonl "
                              "--save-weights shadow.safetensors");
  adapt(method + "--predictions served.csv --trace served.jsonl --save-weights served.safetensors");
  EXPECT_EQ(read("shadow.csv"), source);
  EXPECT_NE(read("served.csv"), source);
  EXPECT_TRUE(read("shadow.safetensors") == read("served.safetensors"));
  EXPECT_CONTAINS(shadow.out, "shadow     adaptation would change ");

  // Both tables count the same answers.
  int differing = 0;
  const auto a = words(read("shadow.csv")), b = words(read("served.csv"));
  ASSERT_EQ(a.size(), b.size());
  const auto answer = [](const std::string& line) {
    const std::size_t comma = line.find(',');
    return line.substr(comma, line.find(',', comma + 1) - comma);
  };
  for (std::size_t i = 1; i < a.size(); ++i) differing += answer(a[i]) != answer(b[i]);
  EXPECT_CONTAINS(shadow.out, "would change " + std::to_string(differing) + " answers of 24");
}

TEST_F(Adapt, StreamsOfOnePictureAndBatchesBeyondTheEnd) {
  write_pictures("one.npy", 1);
  const std::string base = "adapt --weights source.safetensors --loss entropy --select all ";
  for (const char* norm : {"source", "batch", "running"}) {
    const Ending one = run(base + "--data arrays:images=one.npy --norm " + norm);
    EXPECT_EQ(one.code, 0) << one.err;
    EXPECT_CONTAINS(one.out, "answered   1 image in 1 batch,");
  }
  const Ending large = run(base + "--data arrays:images=x.npy --batch-size 1000");
  EXPECT_EQ(large.code, 0) << large.err;
  EXPECT_CONTAINS(large.out, "answered   24 images in 1 batch,");
}

TEST_F(Adapt, RefusesStepsThatAreNotFiniteAndGoesOn) {
  write_planes("f.npy", 24, /*broken=*/9);
  const Ending ending = run(
      "adapt --weights source.safetensors --data arrays:images=f.npy --batch-size 8 --loss entropy "
      "--select all --trace t.jsonl --predictions p.csv --save-weights w.safetensors");
  ASSERT_EQ(ending.code, 0) << ending.err;
  EXPECT_CONTAINS(ending.out, "steps      3 (0 skipped, 1 refused for a value that is not finite)");
  const auto steps = read_json_lines("t.jsonl");
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_TRUE(steps[1].at("loss").is_null());
  EXPECT_EQ(steps[1].at("refused"), true);
  EXPECT_TRUE(steps[1].at("layers").empty());
  EXPECT_FALSE(steps[2].contains("refused"));
  EXPECT_TRUE(steps[2].at("loss").is_number());
}

}  // namespace
}  // namespace gala::test
