#include "gala/data/domainbed.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "gala/data/npy.h"
#include "gala/data/numpy_random.h"
#include "support.h"

namespace gala {
namespace {

using test::fixture;
using test::message_of;
using test::read_text;
using test::TemporaryFolder;
using test::write_text;
using Keys = std::vector<std::int64_t>;

std::filesystem::path numpy_folder() {
  return std::filesystem::path(GALA_TEST_BUILD_DIR) / "fixtures/numpy";
}

Keys shuffled(std::size_t size, std::uint32_t seed) {
  Keys keys(size);
  std::iota(keys.begin(), keys.end(), 0);
  NumpyRandomState(seed).shuffle(keys);
  return keys;
}

// Numbers printed by NumPy 2 for DomainBed's split of 10 and of PACS' 2344 cartoons.
TEST(DomainBedSplit, IsTheOneNumpyMakes) {
  const DomainBedSplit small = domainbed_split(10, 0, 1);
  EXPECT_EQ(small.out, (Keys{5, 0}));
  EXPECT_EQ(small.in, (Keys{3, 7, 8, 6, 1, 2, 9, 4}));
  const DomainBedSplit cartoon = domainbed_split(2344, 0, 1);
  ASSERT_EQ(cartoon.out.size(), 468u);
  EXPECT_EQ(Keys(cartoon.out.begin(), cartoon.out.begin() + 6),
            (Keys{1488, 562, 461, 570, 2092, 1124}));
  EXPECT_EQ(Keys(cartoon.in.end() - 3, cartoon.in.end()), (Keys{1764, 1165, 1156}));
}

TEST(DomainBedSplit, AgreesWithNumpyForManySizesTrialsAndEnvironments) {
  std::ifstream in(numpy_folder() / "numpy.json");
  if (!in) GTEST_SKIP() << "the Python fixture was not made";
  const auto truth = nlohmann::json::parse(in);
  for (const auto& shuffle : truth["shuffles"]) {
    const Keys keys = shuffle["keys"];
    EXPECT_EQ(shuffled(keys.size(), shuffle["seed"]), keys)
        << keys.size() << " seed " << shuffle["seed"];
  }
  for (const auto& split : truth["splits"]) {
    const DomainBedSplit mine =
        domainbed_split(split["size"], split["trial"], split["environment"]);
    EXPECT_EQ(mine.out, split["out"].get<Keys>()) << split["size"] << " " << split["trial"];
    EXPECT_EQ(mine.in, split["in"].get<Keys>()) << split["size"] << " " << split["trial"];
  }
  EXPECT_GE(truth["splits"].size(), 200u);
}

TEST(Npy, ReadsWhatNumpySaved) {
  if (!std::filesystem::exists(numpy_folder() / "i1.npy")) {
    GTEST_SKIP() << "the Python fixture was not made";
  }
  for (const char* kind : {"i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"}) {
    const auto path = numpy_folder() / fmt::format("{}.npy", kind);
    EXPECT_EQ(read_npy_integers(read_npy(path), kind), (Keys{0, 1, 100, 7})) << kind;
  }
  const NpyArray floats = read_npy(numpy_folder() / "f4.npy");
  EXPECT_EQ(floats.shape, (Keys{2, 3, 4, 5}));
  EXPECT_EQ(reinterpret_cast<const float*>(floats.data.data())[119], 119);
  EXPECT_TRUE(read_npy(numpy_folder() / "scalar.npy").shape.empty());
  for (const char* kind : {"i2", "u4", "i8", "bool", "f2", "f4", "f8"}) {
    const auto path = numpy_folder() / fmt::format("labels_{}.npy", kind);
    EXPECT_EQ(read_npy_integers(read_npy(path), kind), (Keys{0, 1, 1, 0})) << kind;
  }
  EXPECT_CONTAINS(message_of<FormatError>(
                      [] { read_npy_integers(read_npy(numpy_folder() / "halves.npy"), "halves"); }),
                  "halves: expected integers, found 1.5 at element 1");
}

std::vector<Image> pictures_of(const std::string& name) {
  const DataSource source =
      open_data(Spec{"arrays", {{"images", (numpy_folder() / name).string()}}});
  std::vector<Image> images(static_cast<std::size_t>(source.domains[0].data->size()));
  for (std::size_t i = 0; i < images.size(); ++i) {
    source.domains[0].data->read(static_cast<std::int64_t>(i), images[i]);
  }
  return images;
}

std::string hash_of(const std::string& name) {
  return content_hash(open_data(Spec{"arrays", {{"images", (numpy_folder() / name).string()}}}));
}

TEST(Npy, GivesTheSamePicturesInEveryOrderAndType) {
  if (!std::filesystem::exists(numpy_folder() / "pictures.npy")) {
    GTEST_SKIP() << "the Python fixture was not made";
  }
  const std::vector<Image> bytes = pictures_of("pictures.npy");
  const std::vector<Image> turned = pictures_of("pictures_fortran.npy");
  const std::vector<Image> floats = pictures_of("planes_littlef4.npy");
  ASSERT_EQ(bytes.size(), 7u);
  ASSERT_EQ(turned.size(), 7u);
  EXPECT_EQ(hash_of("pictures_fortran.npy"), hash_of("pictures.npy"));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(turned[i].pixels, bytes[i].pixels) << i;
    // Pixels and planes are the same numbers, but for the rounding of float16.
    for (std::size_t p = 0; p < 30; ++p) {
      EXPECT_NEAR(floats[i].planes[30 + p], bytes[i].pixels[3 * p + 1] / 255.0, 3e-4);
    }
  }
  for (const char* kind : {"littlef2", "littlef8", "bigf2", "bigf4", "bigf8"}) {
    for (const char* order : {"", "_fortran"}) {
      const std::string name = fmt::format("planes_{}{}.npy", kind, order);
      const std::vector<Image> others = pictures_of(name);
      ASSERT_EQ(others.size(), floats.size()) << name;
      for (std::size_t i = 0; i < floats.size(); ++i) {
        EXPECT_EQ(others[i].planes, floats[i].planes) << name;
      }
      EXPECT_EQ(hash_of(name), hash_of("planes_littlef4.npy")) << name;
    }
  }
}

class DomainBedTree : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string png = read_text(fixture("grey8.png"));
    for (const char* environment : {"photo", "art", "sketch"}) {
      for (const char* name : {"dog", "cat"}) {
        for (int i = 0; i < 10; ++i) {
          write_text(folder_ / fmt::format("{}/{}/{:02}.png", environment, name, i), png);
        }
      }
    }
  }
  DataSource open(const std::string& options) {
    Spec spec = Spec::parse("domainbed:" + options);
    spec.set("path", folder_.path().string());
    return open_data(spec);
  }
  TemporaryFolder folder_;
};

TEST_F(DomainBedTree, SortsEnvironmentsAndTakesOneByNumberOrName) {
  const DataSource all = open("split=all");
  ASSERT_EQ(all.domains.size(), 3u);
  EXPECT_EQ(all.domains[0].name, "art");
  EXPECT_EQ(all.domains[2].name, "sketch");
  EXPECT_EQ(all.class_names(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(open("env=1").domains.at(0).name, "photo");
  EXPECT_EQ(open("env=sketch").domains.at(0).name, "sketch");
  EXPECT_EQ(open("env=\"sketch,0\"").domains.at(1).name, "art");
  EXPECT_CONTAINS(message_of<ConfigError>([&] { open("env=3"); }), "no environment \"3\"");
  EXPECT_CONTAINS(message_of<ConfigError>([&] { open("env=skech"); }), "did you mean \"sketch\"");
}

TEST_F(DomainBedTree, LeavesEnvironmentsOut) {
  const DataSource rest = open("leave_out=1,split=in,trial=4");
  ASSERT_EQ(rest.domains.size(), 2u);
  EXPECT_EQ(rest.domains[0].name, "art");
  EXPECT_EQ(rest.domains[1].name, "sketch");
  // What is left keeps its number, and so its split.
  const DataSource sketch = open("env=2,split=in,trial=4");
  ASSERT_EQ(rest.domains[1].data->size(), 16);
  for (std::int64_t i = 0; i < 16; ++i) {
    EXPECT_EQ(rest.domains[1].data->item_name(i), sketch.domains[0].data->item_name(i));
  }
  EXPECT_EQ(open("leave_out=\"photo,art\"").domains.size(), 1u);
  EXPECT_CONTAINS(message_of<ConfigError>([&] { open("leave_out=3"); }), "no environment \"3\"");
  EXPECT_CONTAINS(message_of<ConfigError>([&] { open("leave_out=\"0,1,2\""); }),
                  "every environment");
  EXPECT_CONTAINS(message_of<ConfigError>([&] { open("env=0,leave_out=1"); }), "cannot both");
}

TEST_F(DomainBedTree, SplitsByTheNumberOfTheEnvironment) {
  const DataSource all = open("env=photo,split=all");
  for (std::int64_t trial : {0, 7}) {
    const DomainBedSplit split = domainbed_split(20, trial, 1);
    const DataSource in = open(fmt::format("env=photo,split=in,trial={}", trial));
    const DataSource out = open(fmt::format("env=photo,split=out,trial={}", trial));
    ASSERT_EQ(in.domains[0].data->size(), 16);
    ASSERT_EQ(out.domains[0].data->size(), 4);
    for (std::int64_t i = 0; i < 16; ++i) {
      EXPECT_EQ(in.domains[0].data->item_name(i),
                all.domains[0].data->item_name(split.in[static_cast<std::size_t>(i)]));
    }
    EXPECT_EQ(out.domains[0].data->label(0), split.out[0] / 10);
  }
}

TEST_F(DomainBedTree, RefusesEnvironmentsWithDifferentClasses) {
  write_text(folder_ / "sketch/cow/1.png", read_text(fixture("grey8.png")));
  EXPECT_CONTAINS(message_of<ConfigError>([&] { open("split=all"); }), "have different classes");
}

}  // namespace
}  // namespace gala
