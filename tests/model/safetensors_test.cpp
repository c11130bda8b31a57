#include "gala/model/safetensors.h"

#include <gtest/gtest.h>

#include "gala/base/random.h"
#include "weight_files.h"

namespace gala {
namespace {

using namespace gala::testing;

std::string refusal_of(std::string_view bytes) {
  const ScratchFolder folder;
  const auto path = folder / "x.safetensors";
  write_file(path, bytes);
  return refusal(read_safetensors, path);
}

std::string refusal_of(std::string_view header, std::string_view data) {
  return refusal_of(safetensors_bytes(header, data));
}

const std::string kFour(4, '\0');
const std::string kEight(8, '\0');

TEST(Safetensors, ReadsEveryTypeAsPythonWroteIt) {
  GALA_REQUIRE_WEIGHT_FIXTURES();
  const auto content = read_safetensors(fixture_folder() / "types.safetensors");
  expect_as_python_wrote(content.tensors, "types.safetensors");
  const std::map<std::string, std::string> metadata{{"gala", "{\"classes\": [\"a\"]}"},
                                                    {"note", "größe \" \\"}};
  EXPECT_EQ(content.metadata, metadata);
}

TEST(Safetensors, ReadsTensorsThatAreNotAligned) {
  GALA_REQUIRE_WEIGHT_FIXTURES();
  const auto content = read_safetensors(fixture_folder() / "unaligned.safetensors");
  expect_as_python_wrote(content.tensors, "unaligned.safetensors");
}

TEST(Safetensors, WritesTheBytesThatPythonWrites) {
  GALA_REQUIRE_WEIGHT_FIXTURES();
  const auto original = fixture_folder() / "types.safetensors";
  const auto content = read_safetensors(original);
  const ScratchFolder folder;
  write_safetensors(folder / "copy.safetensors", content.tensors, content.metadata);
  EXPECT_EQ(read_file(folder / "copy.safetensors"), read_file(original));
}

TEST(Safetensors, WritesContiguousValuesWhateverTheStrides) {
  const ScratchFolder folder;
  const auto matrix = at::arange(6, at::kFloat).reshape({2, 3});
  const std::vector<NamedTensor> tensors{{"a", matrix.t()}, {"b", matrix.select(1, 1)}};
  write_safetensors(folder / "x", tensors, {});
  const std::vector<float> expected{0, 3, 1, 4, 2, 5, 1, 4};
  const std::string bytes = read_file(folder / "x");
  EXPECT_EQ(bytes.substr(bytes.size() - 32),
            std::string(reinterpret_cast<const char*>(expected.data()), 32));
  const auto content = read_safetensors(folder / "x");
  EXPECT_TRUE(content.metadata.empty());
  EXPECT_TRUE(at::equal(content.tensors[0].tensor, matrix.t()));
}

TEST(Safetensors, TensorsOutliveTheirSiblingsAndTheFile) {
  at::Tensor kept;
  {
    const ScratchFolder folder;
    const std::vector<NamedTensor> tensors{{"a", at::full({1000}, 3.5)}, {"b", at::ones({4})}};
    write_safetensors(folder / "x", tensors, {});
    kept = read_safetensors(folder / "x").tensors[0].tensor;
  }
  EXPECT_EQ(kept.sum().item<double>(), 3500);
}

TEST(Safetensors, AcceptsAFileWithoutTensors) {
  const ScratchFolder folder;
  write_safetensors(folder / "x", {}, {{"key", "value"}});
  const auto content = read_safetensors(folder / "x");
  EXPECT_TRUE(content.tensors.empty());
  EXPECT_EQ(content.metadata.at("key"), "value");
}

TEST(Safetensors, GivesTensorsInTheOrderOfTheirData) {
  const ScratchFolder folder;
  write_file(folder / "x",
             safetensors_bytes(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]},)"
                               R"("b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                               "\x07\x08\x09"));
  const auto tensors = read_safetensors(folder / "x").tensors;
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].name, "b");
  EXPECT_EQ(tensors[0].tensor[0].item<int>(), 7);
  EXPECT_EQ(tensors[1].tensor[1].item<int>(), 9);
}

TEST(Safetensors, RefusesToWriteWhatCouldNotBeRead) {
  const ScratchFolder folder;
  const auto write = [&](std::vector<NamedTensor> tensors) {
    write_safetensors(folder / "x", tensors, {});
  };
  const auto one = at::ones({1});
  EXPECT_THROW(write({{"", one}}), Error);
  EXPECT_THROW(write({{"__metadata__", one}}), Error);
  EXPECT_THROW(write({{"a", one}, {"a", one}}), Error);
  EXPECT_THROW(write({{"a", at::Tensor()}}), Error);
  EXPECT_THROW(write({{"\xff", one}}), Error);
  EXPECT_THROW(write({{"a", one.to(at::kComplexFloat)}}), Error);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Safetensors, RefusesAFileThatIsNotThere) {
  const ScratchFolder folder;
  EXPECT_TRUE(contains(refusal(read_safetensors, folder / "none"), "No such file"));
  EXPECT_TRUE(contains(refusal(read_safetensors, folder.path()), "is a folder"));
}

TEST(Safetensors, RefusesAFileTooShortForItsHeader) {
  EXPECT_TRUE(contains(refusal_of(""), "too short"));
  EXPECT_TRUE(contains(refusal_of("\x01\x02\x03"), "too short"));
  EXPECT_TRUE(contains(refusal_of(kEight), "not a JSON object"));
}

TEST(Safetensors, RefusesAHeaderPastTheEnd) {
  EXPECT_TRUE(contains(refusal_of(little_endian<std::uint64_t>(3) + "{}"), "past the end"));
  EXPECT_TRUE(contains(refusal_of(little_endian<std::uint64_t>(100'000'001) + "{}"), "at most"));
  EXPECT_TRUE(contains(refusal_of(std::string(8, '\xff') + "{}"), "at most"));
}

TEST(Safetensors, RefusesAHeaderThatIsNoJsonObject) {
  EXPECT_TRUE(contains(refusal_of("{", ""), "not JSON"));
  EXPECT_TRUE(contains(refusal_of("{} x", ""), "not JSON"));
  EXPECT_TRUE(contains(refusal_of("{\"\xff\":1}", ""), "not JSON"));
  EXPECT_TRUE(contains(refusal_of("{\"a\":1e999}", ""), "not JSON"));
  EXPECT_TRUE(contains(refusal_of("[]", ""), "not a JSON object"));
  EXPECT_TRUE(contains(refusal_of("17", ""), "not a JSON object"));
}

TEST(Safetensors, KeepsItsMessageShortWhenTheHeaderIsLong) {
  std::string header = "{\"";
  header.append(100'000, 'x');
  EXPECT_LT(refusal_of(header, "").size(), 500u);
}

TEST(Safetensors, RefusesDeepNesting) {
  const int depth = 1'000'000;
  std::string lists(depth, '['), objects;
  for (int i = 0; i < depth; ++i) objects += "{\"a\":";
  EXPECT_TRUE(contains(refusal_of("{\"a\":" + lists, ""), "list where none"));
  EXPECT_TRUE(contains(refusal_of("{\"a\":{\"shape\":" + lists, ""), "list where none"));
  EXPECT_TRUE(contains(refusal_of(objects, ""), "nested too deeply"));
}

TEST(Safetensors, RefusesNamesThatComeTwice) {
  const std::string entry = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  EXPECT_TRUE(contains(refusal_of("{\"a\":" + entry + ",\"a\":" + entry + "}", kFour), "twice"));
  EXPECT_TRUE(contains(
      refusal_of(R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", kFour),
      "twice"));
  EXPECT_TRUE(contains(refusal_of(R"({"__metadata__":{"x":"1","x":"2"}})", ""), "twice"));
}

TEST(Safetensors, RefusesAnEmptyName) {
  EXPECT_TRUE(contains(
      refusal_of(R"({"":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", kFour), "empty name"));
}

TEST(Safetensors, RefusesAnUnknownType) {
  EXPECT_TRUE(
      contains(refusal_of(R"({"a":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}})", kFour),
               "\"a\": its dtype F8_E4M3 is not read"));
  EXPECT_TRUE(contains(refusal_of(R"({"a":{"dtype":3,"shape":[4],"data_offsets":[0,4]}})", kFour),
                       "dtype"));
  EXPECT_TRUE(contains(refusal_of(R"({"a":{"shape":[4],"data_offsets":[0,4]}})", kFour), "dtype"));
  EXPECT_TRUE(contains(refusal_of(R"({"a":[]})", ""), "list where none"));
  EXPECT_TRUE(contains(refusal_of(R"({"a":"F32"})", ""), "not an object"));
}

TEST(Safetensors, RefusesShapesThatAreNone) {
  const auto with_shape = [](const std::string& shape) {
    return refusal_of(R"({"a":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":[0,4]}})",
                      kFour);
  };
  for (const char* shape : {"[-1]", "[1.0]", "[\"1\"]", "[null]", "1", "\"\"", "[true]",
                            "[18446744073709551616]", "[9223372036854775808]"}) {
    const std::string message = with_shape(shape);
    EXPECT_TRUE(contains(message, "shape")) << shape << ": " << message;
  }
  // 2^32 * 2^32 and 2^62 * 4 bytes wrap around to 0; a zero must not hide the others.
  EXPECT_TRUE(contains(with_shape("[4294967296,4294967296]"), "too large"));
  EXPECT_TRUE(contains(with_shape("[4611686018427387904]"), "too large"));
  EXPECT_TRUE(contains(with_shape("[0,4611686018427387904,4611686018427387904]"), "too large"));
  std::string ones = "[1";
  for (int i = 0; i < 64; ++i) ones += ",1";
  EXPECT_TRUE(contains(with_shape(ones + "]"), "more than 64"));
  EXPECT_TRUE(
      contains(refusal_of(R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", kFour), "shape"));
}

TEST(Safetensors, RefusesOffsetsThatDoNotFit) {
  const auto with_offsets = [](const std::string& offsets) {
    return refusal_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":)" + offsets + "}}", kFour);
  };
  for (const char* offsets : {"[0]", "[0,4,4]", "[-4,0]", "[0,4.0]", "4", "[]",
                              "[18446744073709551612,18446744073709551615]"}) {
    const std::string message = with_offsets(offsets);
    EXPECT_TRUE(contains(message, "not two whole numbers")) << offsets << ": " << message;
  }
  EXPECT_TRUE(contains(with_offsets("[4,0]"), "backwards"));
  EXPECT_TRUE(contains(with_offsets("[0,3]"), "hold 3 bytes"));
  EXPECT_TRUE(contains(with_offsets("[4,8]"), "cut off"));
  EXPECT_TRUE(contains(with_offsets("[9223372036854775800,9223372036854775804]"), "cut off"));
}

TEST(Safetensors, RefusesHolesOverlapsAndRests) {
  const auto two = [](const std::string& second, std::string_view data) {
    return refusal_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                      R"("b":{"dtype":"F32","shape":[1],"data_offsets":)" +
                          second + "}}",
                      data);
  };
  EXPECT_TRUE(contains(two("[0,4]", kEight), "neither overlap"));
  EXPECT_TRUE(contains(two("[2,6]", kEight), "neither overlap"));
  EXPECT_TRUE(contains(two("[8,12]", kEight + kFour), "nor leave holes"));
  EXPECT_TRUE(contains(two("[4,8]", kEight + kFour), "4 bytes after the last tensor"));
  EXPECT_TRUE(contains(
      refusal_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", kEight), "holes"));
}

TEST(Safetensors, RefusesMetadataThatIsNotText) {
  EXPECT_TRUE(contains(refusal_of(R"({"__metadata__":{"a":1}})", ""), "\"a\" is not text"));
  EXPECT_TRUE(contains(refusal_of(R"({"__metadata__":"a"})", ""), "not an object"));
  EXPECT_TRUE(contains(refusal_of(R"({"__metadata__":{"a":{}}})", ""), "nested too deeply"));
}

TEST(Safetensors, LoadsOrRefusesDamagedFiles) {
  const ScratchFolder folder;
  const std::vector<NamedTensor> tensors{{"weight", at::ones({2, 3})},
                                         {"flag", at::ones({2}, at::kBool)},
                                         {"half", at::ones({3}, at::kHalf)}};
  write_safetensors(folder / "x", tensors, {{"gala", "{}"}});
  const std::string original = read_file(folder / "x");
  int loaded = 0, refused = 0;
  for (std::uint64_t variant = 0; variant < 4000; ++variant) {
    Random random(1, "damage", {variant});
    std::string bytes = original;
    for (std::uint64_t flips = random.below(4); flips-- > 0;) {
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    }
    if (variant % 4 == 0) bytes.resize(random.below(bytes.size() + 1));
    write_file(folder / "y", bytes);
    try {
      for (const auto& item : read_safetensors(folder / "y").tensors) item.tensor.sum();
      ++loaded;
    } catch (const FormatError&) {
      ++refused;
    }
  }
  EXPECT_GT(loaded, 100);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace gala
