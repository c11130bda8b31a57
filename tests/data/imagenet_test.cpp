#include "gala/data/imagenet.h"

#include <png.h>

#include <set>

#include "gala/data/corrupted.h"
#include "gala/data/imagenet_crop.h"
#include "support.h"

namespace gala {
namespace {

using test::message_of;
using test::open_at;
using test::TemporaryFolder;
using test::write_text;

/// Writes a PNG of so many channels whose values are `level` everywhere.
void write_flat(const std::filesystem::path& path, int height, int width, std::uint8_t level,
                int channels = 3) {
  std::filesystem::create_directories(path.parent_path());
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  const std::vector<std::uint8_t> bytes(static_cast<std::size_t>(height * width * channels), level);
  ASSERT_NE(png_image_write_to_file(&image, path.c_str(), 0, bytes.data(), 0, nullptr), 0);
}

/// Four pictures of three classes, of four sizes, one of them grey.
void write_few(const TemporaryFolder& folder) {
  write_flat(folder / "10/val_3.png", 224, 224, 30);
  write_flat(folder / "2/val_1.png", 300, 280, 10);
  write_flat(folder / "2/val_4.png", 20, 30, 40, 1);
  write_flat(folder / "999/val_2.png", 256, 600, 20);
}

TEST(ImageNet, ComesInOrderOfFileNamesWithTheNumbersOfItsFolders) {
  const TemporaryFolder folder;
  write_few(folder);
  const DataSource source = open_at("imagenet", folder.path());
  const Dataset& data = *source.domains.at(0).data;
  ASSERT_EQ(data.size(), 4);
  EXPECT_EQ(data.classes(), 1000);
  constexpr int kLabels[] = {2, 999, 10, 2};
  Image image;
  for (std::int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(data.label(i), kLabels[i]);
    EXPECT_CONTAINS(data.item_name(i), fmt::format("val_{}.png", i + 1));
    data.read(i, image);
    EXPECT_EQ(image.height, 224);
    EXPECT_EQ(image.width, 224);
    // Neither resizing nor cropping changes what is flat, and grey is repeated.
    const auto level = static_cast<std::uint8_t>(10 * (i + 1));
    EXPECT_EQ(image.pixels, std::vector<std::uint8_t>(224 * 224 * 3, level)) << i;
  }
}

TEST(ImageNet, TakesAThousandOtherNamesInByteOrder) {
  const TemporaryFolder folder;
  for (int i = 0; i < 1000; ++i) {
    write_text(folder / fmt::format("n{:08}/{}.png", 7 * i, 5000 - i), "no picture");
  }
  const DataSource source = open_at("imagenet", folder.path());
  EXPECT_EQ(source.domains[0].data->label(0), 999);
  EXPECT_EQ(source.domains[0].data->label(999), 0);
  // One less, and the place of a name says nothing.
  std::filesystem::remove_all(folder / "n00000007");
  const std::string message = message_of<ConfigError>([&] { open_at("imagenet", folder.path()); });
  EXPECT_CONTAINS(message, "999 folders");
  EXPECT_CONTAINS(message, "classes=FILE");
}

TEST(ImageNet, NumbersNamesByAFile) {
  const TemporaryFolder folder, other;
  write_flat(folder / "tench/b.png", 2, 2, 1);
  write_flat(folder / "goldfish/a.png", 2, 2, 1);
  write_text(other / "classes.json", R"({"tench": 0, "goldfish": 1, "sea": 1000})");
  const std::string spec = fmt::format("imagenet:classes={}", (other / "classes.json").string());
  const DataSource source = open_at(spec, folder.path());
  EXPECT_EQ(source.domains[0].data->label(0), 1);
  EXPECT_EQ(source.domains[0].data->label(1), 0);
  write_flat(folder / "sea/c.png", 2, 2, 1);
  EXPECT_CONTAINS(message_of<ConfigError>([&] { open_at(spec, folder.path()); }),
                  "expected 0 to 999");
  std::filesystem::remove_all(folder / "sea");
  write_flat(folder / "trout/c.png", 2, 2, 1);
  EXPECT_CONTAINS(message_of<ConfigError>([&] { open_at(spec, folder.path()); }), "trout");
}

TEST(ImageNet, RefusesFoldersThatAreNoClasses) {
  const auto refusal = [](std::string_view name) {
    const TemporaryFolder folder;
    write_text(folder / "3/x.png", "");
    write_text(folder / fmt::format("{}/x.png", name), "");
    return message_of<ConfigError>([&] { open_at("imagenet", folder.path()); });
  };
  for (const char* name : {"1000", "-1", "007", "1.5", "fish"}) {
    EXPECT_CONTAINS(refusal(name), fmt::format("\"{}\"", name));
    EXPECT_CONTAINS(refusal(name), "0 to 999");
  }
  const TemporaryFolder empty;
  EXPECT_CONTAINS(message_of<ConfigError>([&] { open_at("imagenet", empty.path()); }),
                  "no class folders");
  write_text(empty / "x.png", "");
  EXPECT_CONTAINS(message_of<ConfigError>([&] { open_at("imagenet", empty.path()); }),
                  "no class folders");
}

TEST(ImageNetCrop, GivesThePixelsOfPil) {
  Image image, expected;
  image.shape_pixels(300, 452);
  for (int y = 0; y < 300; ++y) {
    for (int x = 0; x < 452; ++x) {
      for (int c = 0; c < 3; ++c) {
        image.pixels[static_cast<std::size_t>((y * 452 + x) * 3 + c)] =
            static_cast<std::uint8_t>((x * x / 9 + 3 * y + 60 * c) % 256);
      }
    }
  }
  crop_as_imagenet(image, "x");
  const auto path = std::filesystem::path(GALA_TEST_SOURCE_DIR) / "tests/data/imagenet_crop.png";
  read_file(path.string(), expected.encoded);
  decode_image(expected.encoded, path.string(), expected);
  EXPECT_EQ(image.pixels, expected.pixels);
}

TEST(ImageNetCrop, RefusesFloatsAndWhatIsTooNarrow) {
  Image planes;
  planes.height = planes.width = 300;
  planes.planes.resize(300 * 300 * 3);
  EXPECT_CONTAINS(message_of<ConfigError>([&] { crop_as_imagenet(planes, "x.npy"); }), "floats");
  Image narrow;
  narrow.shape_pixels(1, 4000);
  EXPECT_CONTAINS(message_of<ConfigError>([&] { crop_as_imagenet(narrow, "narrow.png"); }),
                  "narrow.png");
}

TEST(CorruptedImageNet, IsMadeOnTheFlyAlwaysAlike) {
  const TemporaryFolder folder;
  write_few(folder);
  const std::string spec =
      "imagenetc:generate=yes,corruption=\"gaussian_noise,fog\",severity=\"1,5\"";
  const DataSource once = open_at(spec, folder.path()), again = open_at(spec, folder.path());
  ASSERT_EQ(once.domains.size(), 4u);
  EXPECT_EQ(once.domains[3].name, "fog_5");
  EXPECT_EQ(once.domains[3].family, "fog");
  Image a, b;
  for (std::size_t d = 0; d < 4; ++d) {
    for (const std::int64_t i : {3, 0, 2}) {
      once.domains[d].data->read(i, a);
      again.domains[d].data->read(i, b);
      EXPECT_EQ(a.pixels, b.pixels);
      EXPECT_EQ(once.domains[d].data->label(i), again.domains[d].data->label(i));
    }
  }
}

TEST(CorruptedImageNet, IsTheCorruptorsPictureAndThenItsJpeg) {
  const TemporaryFolder folder;
  write_few(folder);
  std::vector<std::uint8_t> expected(224 * 224 * 3);
  Corruptor(Corruption::kFog, 5, 4, nullptr, CorruptionSet::kImageNet)
      .apply(2, std::vector<std::uint8_t>(expected.size(), 30), expected);
  const auto read = [&](const std::string& quality) {
    Image image;
    open_at("imagenetc:generate=yes,corruption=fog,seed=4,quality=" + quality, folder.path())
        .domains[0]
        .data->read(2, image);
    return image.pixels;
  };
  EXPECT_EQ(read("0"), expected);
  const auto published = read("85"), poor = read("5");
  double near = 0, far = 0;
  for (std::size_t k = 0; k < expected.size(); ++k) {
    near += std::abs(published[k] - expected[k]);
    far += std::abs(poor[k] - expected[k]);
  }
  EXPECT_GT(near, 0);
  EXPECT_LT(near, far / 2);
}

TEST(CorruptedImageNet, ReadsThePublishedFolders) {
  const TemporaryFolder folder;
  write_flat(folder / "fog/5/7/val_1.png", 224, 224, 3);
  write_flat(folder / "fog/2/8/val_1.png", 224, 224, 4);
  const DataSource source = open_at("imagenetc:corruption=fog,severity=\"5,2\"", folder.path());
  ASSERT_EQ(source.domains.size(), 2u);
  EXPECT_EQ(source.domains[1].data->label(0), 8);
  Image image;
  source.domains[0].data->read(0, image);
  EXPECT_EQ(image.pixels.at(5), 3);
  const auto refusal = [&](const std::string& spec) {
    return message_of<ConfigError>([&] { open_at(spec, folder.path()); });
  };
  EXPECT_CONTAINS(refusal("imagenetc:corruption=fog,severity=1"), "generate=yes");
  EXPECT_CONTAINS(refusal("imagenetc:corruption=smog"), "smog");
  EXPECT_CONTAINS(refusal("imagenetc:corruption=fog,quality=101"), "quality");
}

TEST(CorruptedImageNet, HashTellsSeedSeverityQualityAndPicturesApart) {
  const TemporaryFolder folder;
  write_few(folder);
  const auto hash = [&](const std::string& options) {
    const DataSource source =
        open_at("imagenetc:generate=yes,corruption=fog," + options, folder.path());
    Sha256 sum;
    source.domains[0].data->hash_item(1, sum);
    return sum.hex();
  };
  std::set<std::string> hashes = {hash("severity=1"), hash("severity=2"), hash("severity=1,seed=1"),
                                  hash("severity=1,quality=0")};
  EXPECT_EQ(hashes.size(), 4u);
  EXPECT_TRUE(hashes.contains(hash("severity=1,quality=85")));
  write_flat(folder / "999/val_2.png", 256, 600, 21);
  EXPECT_FALSE(hashes.contains(hash("severity=1")));
}

}  // namespace
}  // namespace gala
