#include <unistd.h>

#include <filesystem>

#include "gala/base/error.h"
#include "gala/data/corruption/corruption_writer.h"
#include "gala/data/npy.h"
#include "tests/data/corruption/test_images.h"

namespace gala::test {
namespace {

/// Pictures in memory; label i is 7 i modulo the classes.
class Pictures final : public Dataset {
 public:
  Pictures(std::vector<std::uint8_t> bytes, std::int64_t side, std::int64_t classes)
      : bytes_(std::move(bytes)), side_(side) {
    set_classes(classes, {});
  }
  std::int64_t size() const override {
    return static_cast<std::int64_t>(bytes_.size()) / (side_ * side_ * 3);
  }
  std::int64_t label(std::int64_t index) const override { return index * 7 % classes(); }
  void read(std::int64_t index, Image& into) const override {
    if (index == broken) throw FormatError("picture 5", "is broken");
    into.shape_pixels(side_, side_);
    const auto begin = bytes_.begin() + index * side_ * side_ * 3;
    std::copy(begin, begin + side_ * side_ * 3, into.pixels.begin());
  }
  std::string item_name(std::int64_t index) const override {
    return "picture " + std::to_string(index);
  }
  void hash_item(std::int64_t, Sha256&) const override {}

  std::int64_t broken = -1;

 private:
  std::vector<std::uint8_t> bytes_;
  std::int64_t side_;
};

class CorruptionWriter : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("gala_writer_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

TEST_F(CorruptionWriter, PutsSeveritiesBelowEachOtherOnAnyNumberOfThreads) {
  constexpr std::int64_t kCount = 11;
  const auto clean = cifar_images(kCount);
  const Pictures pictures(clean, 32, 10);
  std::vector<std::uint8_t> expected;
  for (int severity = 1; severity <= 5; ++severity) {
    const Corruptor corruptor(Corruption::kFog, severity, 9);
    std::vector<std::uint8_t> output(kImageBytes);
    for (std::size_t i = 0; i < kCount; ++i) {
      corruptor.apply(static_cast<std::int64_t>(i), image_at(clean, i), output);
      expected.insert(expected.end(), output.begin(), output.end());
    }
  }
  for (int threads : {1, 3}) {
    std::int64_t done = 0;
    CorruptionWriterOptions options;
    options.seed = 9;
    options.threads = threads;
    options.progress = [&](std::int64_t images) { done = images; };
    write_corrupted(folder_ / "fog.npy", pictures, Corruption::kFog, options);
    EXPECT_EQ(done, 5 * kCount);
    const NpyArray array = read_npy(folder_ / "fog.npy");
    EXPECT_EQ(array.type, "|u1");
    EXPECT_EQ(array.shape, (std::vector<std::int64_t>{5 * kCount, 32, 32, 3}));
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(array.data.data());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), bytes, bytes + array.data.size()));
  }
}

TEST_F(CorruptionWriter, WritesLargePicturesAndTheirJpeg) {
  const auto clean = mosaics(3);
  const Pictures pictures(clean, 224, 10);
  CorruptionWriterOptions options;
  options.severities = {4};
  options.set = CorruptionSet::kImageNet;
  options.threads = 2;
  for (const int quality : {0, 85}) {
    options.quality = quality;
    write_corrupted(folder_ / "x.npy", pictures, Corruption::kContrast, options);
    const NpyArray array = read_npy(folder_ / "x.npy");
    ASSERT_EQ(array.shape, (std::vector<std::int64_t>{3, 224, 224, 3}));
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(array.data.data());
    const Corruptor corruptor(Corruption::kContrast, 4, 0, nullptr, CorruptionSet::kImageNet);
    std::vector<std::uint8_t> expected(kMosaicBytes);
    int different = 0, largest = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      corruptor.apply(static_cast<std::int64_t>(i),
                      std::span(clean).subspan(i * kMosaicBytes, kMosaicBytes), expected);
      for (std::size_t k = 0; k < kMosaicBytes; ++k) {
        const int distance = std::abs(bytes[i * kMosaicBytes + k] - expected[k]);
        different += distance > 0, largest = std::max(largest, distance);
      }
    }
    EXPECT_EQ(different > 0, quality > 0);
    EXPECT_LT(largest, 40);  // JPEG of 85 is near
  }
}

TEST_F(CorruptionWriter, WritesLabelsOncePerSeverity) {
  const Pictures pictures(cifar_images(4), 32, 10);
  write_labels(folder_ / "labels.npy", pictures, 2);
  const NpyArray array = read_npy(folder_ / "labels.npy");
  EXPECT_EQ(array.type, "|u1");
  EXPECT_EQ(read_npy_integers(array, "labels.npy"),
            (std::vector<std::int64_t>{0, 7, 4, 1, 0, 7, 4, 1}));
}

TEST_F(CorruptionWriter, WritesLabelsBeyondAByteAsIntegers) {
  const Pictures pictures(std::vector<std::uint8_t>(60 * 12), 2, 1000);
  write_labels(folder_ / "labels.npy", pictures, 1);
  const NpyArray array = read_npy(folder_ / "labels.npy");
  EXPECT_EQ(array.type, "<i8");
  EXPECT_EQ(read_npy_integers(array, "labels.npy").back(), 413);
}

TEST_F(CorruptionWriter, NamesThePictureThatDoesNotFitAndLeavesNothing) {
  const Pictures small(std::vector<std::uint8_t>(28 * 28 * 3 * 2), 28, 10);
  try {
    write_corrupted(folder_ / "fog.npy", small, Corruption::kFog, {});
    FAIL();
  } catch (const ConfigError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("picture 0"), std::string::npos) << message;
    EXPECT_NE(message.find("28x28"), std::string::npos) << message;
    EXPECT_NE(message.find("32x32"), std::string::npos) << message;
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(CorruptionWriter, PassesOnTheFirstUnreadablePicture) {
  Pictures pictures(cifar_images(20), 32, 10);
  pictures.broken = 5;
  CorruptionWriterOptions options;
  options.threads = 4;
  EXPECT_THROW(write_corrupted(folder_ / "fog.npy", pictures, Corruption::kFog, options),
               FormatError);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

}  // namespace
}  // namespace gala::test
