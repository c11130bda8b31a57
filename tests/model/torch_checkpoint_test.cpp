#include "gala/model/torch_checkpoint.h"

#include <gtest/gtest.h>

#include "gala/base/random.h"
#include "weight_files.h"
#include "zip_builder.h"

namespace gala {
namespace {

using namespace gala::testing;
namespace code = gala::testing::pickle;

std::string fixture_refusal(const std::string& name) {
  return refusal(read_torch_checkpoint, fixture_folder() / name);
}

const std::string kFourFloats = [] {
  std::string bytes;
  for (const float value : {1.0f, 2.0f, 3.0f, 4.0f}) bytes += little_endian(value);
  return bytes;
}();

/// A checkpoint of this pickle (without its first and last bytes) and a storage "0" of four floats.
std::string checkpoint(const std::string& program, std::string_view storage = kFourFloats) {
  return ZipBuilder()
      .add("x/data.pkl", "\x80\x02" + program + ".")
      .add("x/data/0", storage)
      .finish();
}

std::vector<NamedTensor> read_bytes(std::string_view bytes) {
  const ScratchFolder folder;
  write_file(folder / "x.pt", bytes);
  return read_torch_checkpoint(folder / "x.pt");
}

std::string refusal_of(std::string_view bytes) {
  const ScratchFolder folder;
  write_file(folder / "x.pt", bytes);
  return refusal(read_torch_checkpoint, folder / "x.pt");
}

std::string refusal_of_tensor(const std::string& tensor) {
  return refusal_of(checkpoint(code::dict("a", tensor)));
}

#define EXPECT_REFUSAL(message, part)                                        \
  {                                                                          \
    const std::string text = message;                                        \
    EXPECT_TRUE(contains(text, part)) << "not \"" << part << "\": " << text; \
  }

TEST(TorchCheckpoint, ReadsWhatPytorchSaved) {
  GALA_REQUIRE_WEIGHT_FIXTURES();
  for (const char* name :
       {"plain.pt", "protocol2.pt", "protocol3.pt", "protocol4.pt", "protocol5.pt",
        "under_state_dict.pt", "under_model_state_dict.pt", "under_model.pt", "under_net.pt",
        "under_params.pt", "nested.pt", "training.th", "half_prefixed.pt", "types.pt", "views.pt",
        "many.pt", "repacked.pt", "deflated.pt"}) {
    expect_as_python_wrote(read_torch_checkpoint(fixture_folder() / name), name);
  }
}

TEST(TorchCheckpoint, SaysWhatToDoAboutOtherPytorchFiles) {
  GALA_REQUIRE_WEIGHT_FIXTURES();
  const std::string advice = "torch.save(model.state_dict(), FILE)";
  EXPECT_REFUSAL(fixture_refusal("legacy.pt"), advice);
  EXPECT_REFUSAL(fixture_refusal("script.pt"), "TorchScript");
  EXPECT_REFUSAL(fixture_refusal("script.pt"), advice);
  for (const char* name : {"module.pt", "module_inside.pt"}) {
    EXPECT_REFUSAL(fixture_refusal(name), "torch.nn.modules.container.Sequential");
    EXPECT_REFUSAL(fixture_refusal(name), advice);
  }
}

TEST(TorchCheckpoint, RefusesWhatItCannotRead) {
  GALA_REQUIRE_WEIGHT_FIXTURES();
  EXPECT_REFUSAL(fixture_refusal("big_endian.pt"), "byte order");
  EXPECT_REFUSAL(fixture_refusal("no_tensors.pt"), "no dictionary of tensors");
  EXPECT_REFUSAL(fixture_refusal("list.pt"), "no dictionary of tensors");
  EXPECT_REFUSAL(fixture_refusal("sparse.pt"), "\"a\": is made by torch._utils._rebuild_sparse");
  EXPECT_REFUSAL(fixture_refusal("uint16.pt"), "\"a\": its type torch.uint16 is not read");
  EXPECT_REFUSAL(fixture_refusal("complex.pt"), "its type torch.ComplexFloatStorage is not read");
  EXPECT_REFUSAL(fixture_refusal("arrays.npz"), "0 entries data.pkl");
  EXPECT_REFUSAL(fixture_refusal("types.safetensors"), "not a file of torch.save");
}

TEST(TorchCheckpoint, NeverRunsWhatAFileAsksFor) {
  const ScratchFolder folder;
  const auto trace = folder / "was_here";
  const std::string call = "cos\nsystem\n(" + code::text("touch " + trace.string()) + "tR";
  const auto tensors = read_bytes(checkpoint("}(" + code::text("evil") + call + code::text("a") +
                                             code::tensor(code::storage(4), 0, {4}, {1}) + "u"));
  ASSERT_EQ(tensors.size(), 1u);
  EXPECT_EQ(tensors[0].name, "a");
  EXPECT_FALSE(std::filesystem::exists(trace));
  EXPECT_REFUSAL(refusal_of(checkpoint(call)), "whole pickled object (os.system)");
}

TEST(TorchCheckpoint, ReadsStridesAndOffsets) {
  const auto tensors =
      read_bytes(checkpoint(code::dict("a", code::tensor(code::storage(4), 1, {2, 2}, {1, 1}))));
  EXPECT_TRUE(at::equal(tensors.at(0).tensor, at::tensor({2.f, 3.f, 3.f, 4.f}).view({2, 2})));
}

TEST(TorchCheckpoint, ReadsAStorageThatIsNotAligned) {
  for (std::size_t shift = 0; shift < 8; ++shift) {
    const auto bytes =
        ZipBuilder()
            .add(std::string(shift, 'p'), "")
            .add("data.pkl",
                 "\x80\x02" + code::dict("a", code::tensor(code::storage(4), 0, {4}, {1})) + ".")
            .add("data/0", kFourFloats)
            .finish();
    EXPECT_TRUE(at::equal(read_bytes(bytes).at(0).tensor, at::tensor({1.f, 2.f, 3.f, 4.f})));
  }
}

TEST(TorchCheckpoint, ReadsAnOrderedDictOfPython2) {
  const std::string pair =
      "](" + code::text("a") + code::tensor(code::storage(4), 0, {4}, {1}) + "e";
  const auto tensors = read_bytes(checkpoint("ccollections\nOrderedDict\n](" + pair + "e\x85R"));
  EXPECT_EQ(tensors.at(0).name, "a");
}

TEST(TorchCheckpoint, AcceptsEmptyAndScalarTensors) {
  const std::string program =
      "}(" + code::text("empty") + code::tensor(code::storage(0), 7, {0, 3}, {3, 1}) +
      code::text("scalar") + code::tensor(code::storage(1, "LongStorage", "1"), 0, {}, {}) + "u.";
  const auto tensors = read_bytes(ZipBuilder()
                                      .add("x/data.pkl", "\x80\x02" + program)
                                      .add("x/data/0", "")
                                      .add("x/data/1", little_endian<std::int64_t>(-7))
                                      .finish());
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].tensor.sizes(), (std::vector<std::int64_t>{0, 3}));
  EXPECT_EQ(tensors[1].tensor.dim(), 0);
  EXPECT_EQ(tensors[1].tensor.item<std::int64_t>(), -7);
}

TEST(TorchCheckpoint, RefusesTensorsThatLeaveTheirStorage) {
  const auto floats = code::storage(4);
  constexpr std::int64_t kLargest = INT64_MAX;
  EXPECT_REFUSAL(refusal_of_tensor(code::tensor(floats, 0, {5}, {1})), "goes past the 4 elements");
  EXPECT_REFUSAL(refusal_of_tensor(code::tensor(floats, 4, {1}, {1})), "goes past");
  EXPECT_REFUSAL(refusal_of_tensor(code::tensor(floats, 0, {2, 2}, {4, 1})), "goes past");
  EXPECT_REFUSAL(refusal_of_tensor(code::tensor(floats, kLargest, {2}, {1})), "goes past");
  EXPECT_REFUSAL(refusal_of_tensor(code::tensor(floats, 0, {3}, {kLargest})), "goes past");
  EXPECT_REFUSAL(refusal_of_tensor(code::tensor(floats, -1, {1}, {1})), "offset");
  EXPECT_REFUSAL(refusal_of_tensor(code::tensor(floats, 0, {-1}, {1})), "whole numbers");
  EXPECT_REFUSAL(refusal_of_tensor(code::tensor(floats, 0, {2}, {-1})), "whole numbers");
  EXPECT_REFUSAL(refusal_of_tensor(code::tensor(floats, 0, {2, 2}, {1})), "more sizes");
  EXPECT_REFUSAL(refusal_of_tensor(code::tensor(floats, 0, {kLargest, kLargest}, {0, 0})),
                 "too large");
  EXPECT_REFUSAL(refusal_of_tensor(code::tensor(floats, 0, {0, kLargest, kLargest}, {0, 0, 0})),
                 "too large");
  EXPECT_REFUSAL(refusal_of_tensor(code::tensor(floats, 0, {1 << 30}, {0})), "repeats 4");
  EXPECT_REFUSAL(refusal_of_tensor(code::tensor(floats, 0, std::vector<std::int64_t>(65, 1),
                                                std::vector<std::int64_t>(65, 1))),
                 "64 dimensions");
}

TEST(TorchCheckpoint, RefusesStoragesThatAreNotWhatTheyAreSaidToBe) {
  const auto with = [](const std::string& storage) {
    return refusal_of_tensor(code::tensor(storage, 0, {1}, {1}));
  };
  EXPECT_REFUSAL(with(code::storage(5)), "should have 20 bytes and has 16");
  EXPECT_REFUSAL(with(code::storage(3)), "should have 12 bytes and has 16");
  EXPECT_REFUSAL(with(code::storage(4, "DoubleStorage")), "should have 32 bytes");
  EXPECT_REFUSAL(with(code::storage(-1)), "unknown way");
  EXPECT_REFUSAL(with(code::storage(INT64_MAX)), "unknown way");
  EXPECT_REFUSAL(with(code::storage(4, "FloatStorage", "1")), "x/data/1 is missing");
  EXPECT_REFUSAL(with(code::storage(4, "OddStorage")), "torch.OddStorage is not read");
  EXPECT_REFUSAL(with(code::integer(4)), "no storage");
  EXPECT_REFUSAL(with(code::integer(4) + "Q"), "unknown way");
  EXPECT_REFUSAL(with(code::tuple({1, 2, 3, 4, 5}) + "Q"), "unknown way");
}

TEST(TorchCheckpoint, RefusesCallsWithTheWrongArguments) {
  const std::string function = "ctorch._utils\n_rebuild_tensor_v2\n";
  EXPECT_REFUSAL(refusal_of_tensor(function + ")R"), "lacks");
  EXPECT_REFUSAL(refusal_of_tensor(function + "NR"), "no tuple");
  EXPECT_REFUSAL(refusal_of_tensor("ctorch._utils\n_rebuild_parameter\n)R"), "without a tensor");
  EXPECT_REFUSAL(refusal_of_tensor("ctorch._tensor\n_rebuild_from_type_v2\n)R"), "derived type");
  std::string wrapped = code::tensor(code::storage(4), 0, {4}, {1});
  for (int i = 0; i < 10; ++i) wrapped = "ctorch._utils\n_rebuild_parameter\n(" + wrapped + "tR";
  EXPECT_REFUSAL(refusal_of_tensor(wrapped), "is made by torch._utils._rebuild_parameter");
  EXPECT_REFUSAL(
      refusal_of(checkpoint("}(" + code::text("a") + code::tensor(code::storage(4), 0, {4}, {1}) +
                            code::text("a") + code::tensor(code::storage(4), 0, {4}, {1}) + "u")),
      "\"a\": comes twice");
}

TEST(TorchCheckpoint, RefusesDamagedPickles) {
  const auto pickle = [](const std::string& program) { return refusal_of(checkpoint(program)); };
  EXPECT_REFUSAL(refusal_of(ZipBuilder().add("x/data.pkl", "").finish()), "ends too early");
  EXPECT_REFUSAL(refusal_of(ZipBuilder().add("x/data.pkl", "\x80\x02").finish()), "too early");
  EXPECT_REFUSAL(refusal_of(ZipBuilder().add("x/data.pkl", "\x80\x06.").finish()), "protocol 6");
  EXPECT_REFUSAL(pickle(""), "where there is none");
  EXPECT_REFUSAL(pickle("("), "where there is none");
  EXPECT_REFUSAL(pickle("t"), "mark where there is none");
  EXPECT_REFUSAL(pickle("}(Nu"), "a key has no value");
  EXPECT_REFUSAL(pickle("NN\x86(NNu"), "no dictionary");
  EXPECT_REFUSAL(pickle("}Na"), "no list");
  EXPECT_REFUSAL(pickle("h\x05"), "recalls value 5");
  EXPECT_REFUSAL(pickle("NN\x93"), "global's name");
  EXPECT_REFUSAL(pickle("c" + std::string(5000, 'm') + "\nname\n"), "global's name");
  EXPECT_REFUSAL(pickle("\xff"), "code 0xff");
  EXPECT_REFUSAL(pickle("X\xff\xff\xff\xff"), "too early");
  EXPECT_REFUSAL(pickle("\x8d" + std::string(8, '\xff')), "too early");
  EXPECT_REFUSAL(pickle("\x8b" + std::string(4, '\xff')), "too early");
  EXPECT_REFUSAL(pickle("cmodule"), "too early");
}

TEST(TorchCheckpoint, SurvivesPicklesMadeToHurt) {
  const auto repeat = [](const std::string& piece, int count) {
    std::string all;
    for (int i = 0; i < count; ++i) all += piece;
    return all;
  };
  // Deep nesting, a list that holds itself, and doubling by reference cost no more than their
  // bytes.
  EXPECT_REFUSAL(refusal_of(checkpoint(repeat("](", 500'000) + repeat("e", 500'000))),
                 "no dictionary of tensors");
  EXPECT_REFUSAL(refusal_of(checkpoint("]q\x01h\x01"
                                       "a")),
                 "no dictionary of tensors");
  EXPECT_REFUSAL(refusal_of(checkpoint("]" + repeat("q\x01](h\x01h\x01"
                                                    "e",
                                                    10'000))),
                 "no dictionary of tensors");
  // A dictionary whose every key leads back to itself.
  EXPECT_REFUSAL(
      refusal_of(checkpoint("}q\x01(" + repeat(code::text("model") + "h\x01", 20'000) + "u")),
      "no dictionary of tensors");
  EXPECT_REFUSAL(refusal_of(checkpoint(repeat("]", 4'000'001))), "values");
  EXPECT_REFUSAL(refusal_of(checkpoint(repeat("(", 4'000'001))), "too many values");
  EXPECT_REFUSAL(refusal_of(checkpoint(repeat("N", 4'000'001))), "too many values");
  // One list of 1000 pairs, made into an OrderedDict again and again.
  EXPECT_REFUSAL(refusal_of(checkpoint("](" + repeat("NN\x86", 1000) + "e\x85q\x01" +
                                       repeat("ccollections\nOrderedDict\nh\x01R0", 5000) + "N")),
                 "copies too many");
}

TEST(TorchCheckpoint, RefusesDamagedZips) {
  const std::string good = checkpoint(code::dict("a", code::tensor(code::storage(4), 0, {4}, {1})));
  ASSERT_EQ(read_bytes(good).size(), 1u);
  EXPECT_REFUSAL(refusal_of(""), "not a file of torch.save");
  EXPECT_REFUSAL(refusal_of("PK"), "cut off");
  EXPECT_REFUSAL(refusal_of(good.substr(0, good.size() - 1)), "cut off");
  EXPECT_REFUSAL(refusal_of(good.substr(0, good.size() / 2)), "cut off");
  EXPECT_REFUSAL(refusal_of("PK\x03\x04" + good), "garbled");

  const auto lying = [](const ZipLie& lie) {
    return refusal_of(ZipBuilder().add("x/data.pkl", "\x80\x02N.", lie).finish());
  };
  EXPECT_REFUSAL(lying({.checksum = 1}), "checksum");
  EXPECT_REFUSAL(lying({.packed_size = 100, .size = 100}), "goes into the directory");
  EXPECT_REFUSAL(lying({.size = 100}), "two sizes");
  EXPECT_REFUSAL(lying({.header = 1}), "not where the directory says");
  EXPECT_REFUSAL(lying({.header = 1u << 30}), "past its end");
  EXPECT_REFUSAL(lying({.method = 12}), "method 12");
  EXPECT_REFUSAL(lying({.flags = 1}), "encrypted");
  EXPECT_REFUSAL(lying({.size = ~0u}), "64-bit sizes");
  EXPECT_REFUSAL(lying({.size = ~0u, .extra = "\x01\x00\xff\x7f" + std::string(8, '\1')}),
                 "64-bit sizes");
  EXPECT_REFUSAL(lying({.packed_size = ~0u,
                        .size = ~0u,
                        .extra = std::string("\x01\x00\x10\x00", 4) + std::string(16, '\xff')}),
                 "goes into the directory");
  EXPECT_REFUSAL(refusal_of(ZipBuilder().add("a", "").add("a", "").finish()), "comes twice");
  EXPECT_REFUSAL(refusal_of(ZipBuilder().add("a", "1234").add("b/data.pkl", "N.").finish()),
                 "no dictionary of tensors");
  EXPECT_REFUSAL(refusal_of(ZipBuilder().add("a/data.pkl", "N.").add("b/data.pkl", "N.").finish()),
                 "2 entries data.pkl");
}

TEST(TorchCheckpoint, RefusesEntriesThatShareBytes) {
  // The second entry's header lies inside the first one's bytes.
  const std::string inner = ZipBuilder().add("b", "1234").finish().substr(0, 35);
  const std::string outer_name = "a";
  const auto bytes =
      ZipBuilder().add(outer_name, inner).add("b", "1234", {.header = 30 + 1}).finish();
  EXPECT_REFUSAL(refusal_of(bytes), "share bytes");
}

TEST(TorchCheckpoint, ReadsSixtyFourBitSizes) {
  const std::string program =
      "\x80\x02" + code::dict("a", code::tensor(code::storage(4), 0, {4}, {1})) + ".";
  const auto extra = std::string("\x01\x00\x10\x00", 4) + little_endian<std::uint64_t>(16) +
                     little_endian<std::uint64_t>(16);
  const auto tensors = read_bytes(
      ZipBuilder()
          .add("x/data.pkl", program)
          .add("x/data/0", kFourFloats, {.packed_size = ~0u, .size = ~0u, .extra = extra})
          .finish("a comment"));
  EXPECT_EQ(tensors.at(0).tensor.sum().item<double>(), 10);
}

TEST(TorchCheckpoint, RefusesDeflatedBombsAndLies) {
  // A stored block of deflate: final, length, its complement, the bytes.
  const auto block = [](std::string_view bytes) {
    const auto size = static_cast<std::uint16_t>(bytes.size());
    return std::string("\x01") + little_endian(size) + little_endian<std::uint16_t>(~size) +
           std::string(bytes);
  };
  const auto with = [&](std::int64_t elements, std::uint32_t size, const std::string& packed) {
    return ZipBuilder()
        .add("x/data.pkl",
             "\x80\x02" + code::dict("a", code::tensor(code::storage(elements), 0, {4}, {1})) + ".")
        .add("x/data/0", packed, {.checksum = crc32_of(kFourFloats), .size = size, .method = 8})
        .finish();
  };
  EXPECT_EQ(read_bytes(with(4, 16, block(kFourFloats))).at(0).tensor.sum().item<double>(), 10);
  EXPECT_REFUSAL(refusal_of(with(4, 16, block(kFourFloats + "x"))), "does not unpack to its 16");
  EXPECT_REFUSAL(refusal_of(with(4, 16, block("short"))), "does not unpack");
  EXPECT_REFUSAL(refusal_of(with(4, 16, block(kFourFloats) + "x")), "does not unpack");
  EXPECT_REFUSAL(refusal_of(with(4, 16, "garbage")), "does not unpack");
  EXPECT_REFUSAL(refusal_of(with(15'000'000, 60'000'000, block(kFourFloats))), "cannot unpack");
  EXPECT_REFUSAL(refusal_of(with(1'000'000'000, 4'000'000'000, block(kFourFloats))),
                 "would unpack to more than");
}

/// A few bytes for each tensor, and not many tensors, could stand for any memory.
TEST(TorchCheckpoint, RefusesManyTensorsOutOfLittle) {
  const auto many = [](const std::string& storage, std::int64_t elements, std::int64_t stride) {
    std::string program = "}(";
    for (int i = 0; i < 40; ++i) {
      program += code::text(fmt::format("t{}", i)) + code::tensor(storage, 0, {elements}, {stride});
    }
    return program + "u";
  };
  const auto floats = code::storage(4), booleans = code::storage(16, "BoolStorage");
  EXPECT_REFUSAL(refusal_of(checkpoint(many(floats, 1 << 20, 0))), "repeats 4");
  EXPECT_REFUSAL(refusal_of(checkpoint(many(booleans, 1 << 20, 0))), "repeats 16");
  EXPECT_EQ(read_bytes(checkpoint(many(floats, 4, 1))).size(), 40u);
  const std::int64_t large = 1 << 23;
  const auto file =
      ZipBuilder()
          .add("x/data.pkl", "\x80\x02" + many(code::storage(large, "BoolStorage"), large, 1) + ".")
          .add("x/data/0", std::string(large, '\1'))
          .finish();
  EXPECT_REFUSAL(refusal_of(file), "more than 268435456 booleans");
}

TEST(TorchCheckpoint, LoadsOrRefusesDamagedFiles) {
  const auto program = "}(" + code::text("module.a") +
                       code::tensor(code::storage(4), 1, {2, 1}, {1, 1}) + code::text("module.b") +
                       "ctorch._utils\n_rebuild_parameter\n(" +
                       code::tensor(code::storage(4), 0, {4}, {1}) + "\x88}tR" + "u";
  const std::string original = code::dict("state_dict", program);
  ASSERT_EQ(read_bytes(checkpoint(original)).size(), 2u);
  const ScratchFolder folder;
  int loaded = 0, refused = 0;
  for (std::uint64_t variant = 0; variant < 8000; ++variant) {
    Random random(1, "damage", {variant});
    // Half of the damage happens before packing, so that it gets past the checksums.
    std::string inner = original;
    const auto damage = [&](std::string& bytes) {
      for (std::uint64_t flips = 1 + random.below(3); flips-- > 0;) {
        bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
      }
      if (random.below(8) == 0) bytes.resize(random.below(bytes.size()));
    };
    if (variant % 2 == 0) damage(inner);
    std::string bytes = checkpoint(inner);
    if (variant % 2 == 1) damage(bytes);
    write_file(folder / "x", bytes);
    try {
      for (const auto& item : read_torch_checkpoint(folder / "x")) item.tensor.sum();
      ++loaded;
    } catch (const FormatError&) {
      ++refused;
    }
  }
  EXPECT_GT(loaded, 100);
  EXPECT_GT(refused, 3000);
}

}  // namespace
}  // namespace gala
