#include "gala/data/cifar.h"

#include <numeric>

#include "gala/base/input_file.h"
#include "gala/base/json.h"
#include "gala/base/random.h"
#include "gala/data/array_dataset.h"
#include "gala/data/image_folder.h"

namespace gala {
namespace {

namespace fs = std::filesystem;
constexpr std::int64_t kSide = 32;
constexpr std::int64_t kArea = kSide * kSide;
constexpr std::size_t kPictureBytes = kArea * 3;

struct Pictures {
  std::vector<std::uint8_t> pixels;
  std::vector<std::int64_t> labels;
};

/// One official file: `label_bytes` bytes of labels, of which the last is taken, then three planes.
void append_binary(const fs::path& path, std::size_t label_bytes, Pictures& into) {
  const auto file = FileContent::read(path);
  const std::span<const unsigned char> bytes = file->bytes();
  const std::size_t record = label_bytes + kPictureBytes;
  if (bytes.empty() || bytes.size() % record != 0) {
    throw FormatError(path.string(), fmt::format("{} bytes are not a whole number of records of {}",
                                                 bytes.size(), record));
  }
  for (std::size_t at = 0; at < bytes.size(); at += record) {
    into.labels.push_back(bytes[at + label_bytes - 1]);
    const unsigned char* plane = bytes.data() + at + label_bytes;
    for (std::int64_t i = 0; i < kArea; ++i) {
      for (std::int64_t c = 0; c < 3; ++c) into.pixels.push_back(plane[c * kArea + i]);
    }
  }
}

/// One PNG whose every row is a picture.
void append_png_batch(const fs::path& path, Pictures& into) {
  Image image;
  read_file(path.string(), image.encoded);
  decode_image(image.encoded, path.string(), image);
  if (image.width != kArea) {
    throw FormatError(path.string(),
                      fmt::format("rows of {} pixels are not 32 x 32 pictures", image.width));
  }
  into.pixels.insert(into.pixels.end(), image.pixels.begin(), image.pixels.end());
}

std::vector<std::int64_t> read_json_labels(const fs::path& path) {
  const auto file = FileContent::read(path);
  const auto json =
      try_parse_json({reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()});
  if (!json.is_array()) throw FormatError(path.string(), "expected a list of labels");
  std::vector<std::int64_t> labels;
  for (const auto& value : json) {
    if (!value.is_number_integer()) throw FormatError(path.string(), "a label is not an integer");
    labels.push_back(value.get<std::int64_t>());
  }
  return labels;
}

std::vector<std::string> batch_names(int classes, Split split, bool binary) {
  if (classes == 100 && binary) return {split == Split::kTest ? "test.bin" : "train.bin"};
  const std::string ending = binary ? ".bin" : ".png";
  if (split == Split::kTest) return {"test_batch" + ending};
  std::vector<std::string> names;
  for (int i = 1; i <= 5; ++i) names.push_back(fmt::format("data_batch_{}{}", i, ending));
  return names;
}

/// The folder itself or the one the official archive makes.
fs::path binary_folder(const fs::path& path, int classes) {
  const fs::path inner = path / (classes == 100 ? "cifar-100-binary" : "cifar-10-batches-bin");
  return fs::is_directory(inner) ? inner : path;
}

/// Class folders keep no order between the classes. As they are listed, every batch of a stream would be of one
/// or two of them.
std::shared_ptr<const Dataset> mixed(std::shared_ptr<const Dataset> folders) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(folders->size()));
  std::iota(order.begin(), order.end(), 0);
  Random(0, "cifar folders").shuffle(order);
  return std::make_shared<Subset>(std::move(folders), std::move(order));
}

/// A single PNG of pictures with its labels beside it.
std::shared_ptr<const Dataset> open_png_file(const fs::path& path, int classes) {
  Pictures pictures;
  append_png_batch(path, pictures);
  const fs::path labels = path.parent_path() / (path.stem().string() + "_labels.npy");
  pictures.labels =
      read_labels(labels, static_cast<std::int64_t>(pictures.pixels.size() / kPictureBytes));
  return std::make_shared<ArrayDataset>(
      own_pictures(path.string(), std::move(pictures.pixels), kSide, kSide, 3),
      std::move(pictures.labels), cifar_class_names(classes));
}

}  // namespace

const std::vector<std::string>& cifar_class_names(int classes) {
  static const std::vector<std::string> ten = {"airplane", "automobile", "bird",  "cat",  "deer",
                                               "dog",      "frog",       "horse", "ship", "truck"};
  static const std::vector<std::string> hundred = {
      "apple",       "aquarium_fish", "baby",      "bear",       "beaver",       "bed",
      "bee",         "beetle",        "bicycle",   "bottle",     "bowl",         "boy",
      "bridge",      "bus",           "butterfly", "camel",      "can",          "castle",
      "caterpillar", "cattle",        "chair",     "chimpanzee", "clock",        "cloud",
      "cockroach",   "couch",         "crab",      "crocodile",  "cup",          "dinosaur",
      "dolphin",     "elephant",      "flatfish",  "forest",     "fox",          "girl",
      "hamster",     "house",         "kangaroo",  "keyboard",   "lamp",         "lawn_mower",
      "leopard",     "lion",          "lizard",    "lobster",    "man",          "maple_tree",
      "motorcycle",  "mountain",      "mouse",     "mushroom",   "oak_tree",     "orange",
      "orchid",      "otter",         "palm_tree", "pear",       "pickup_truck", "pine_tree",
      "plain",       "plate",         "poppy",     "porcupine",  "possum",       "rabbit",
      "raccoon",     "ray",           "road",      "rocket",     "rose",         "sea",
      "seal",        "shark",         "shrew",     "skunk",      "skyscraper",   "snail",
      "snake",       "spider",        "squirrel",  "streetcar",  "sunflower",    "sweet_pepper",
      "table",       "tank",          "telephone", "television", "tiger",        "tractor",
      "train",       "trout",         "tulip",     "turtle",     "wardrobe",     "whale",
      "willow_tree", "wolf",          "woman",     "worm"};
  return classes == 10 ? ten : hundred;
}

std::shared_ptr<const Dataset> open_cifar(const fs::path& path, int classes, Split split) {
  if (fs::is_regular_file(path)) return open_png_file(path, classes);
  const std::string part(enum_names(split)[static_cast<std::size_t>(split)]);
  Pictures pictures;
  fs::path origin = binary_folder(path, classes);
  const auto binary = batch_names(classes, split, true), png = batch_names(classes, split, false);
  if (fs::exists(origin / binary[0])) {
    for (const std::string& name : binary) {
      append_binary(origin / name, classes == 100 ? 2 : 1, pictures);
    }
  } else if (fs::exists(path / png[0])) {
    origin = path;
    for (const std::string& name : png) append_png_batch(path / name, pictures);
    const fs::path labels = path / (part + "_lables.json");
    pictures.labels = read_json_labels(labels);
    check_labels(pictures.labels, static_cast<std::int64_t>(pictures.pixels.size() / kPictureBytes),
                 labels.string());
  } else if (fs::is_directory(path / part)) {
    auto folders = open_class_folders(path / part);
    if (folders->classes() != classes) {
      fail<ConfigError>("{}: {} class folders, expected {}", (path / part).string(),
                        folders->classes(), classes);
    }
    return mixed(std::move(folders));
  } else {
    fail<ConfigError>("{}: found neither {} nor {} nor the folder {}/", path.string(), binary[0],
                      png[0], part);
  }
  return std::make_shared<ArrayDataset>(
      own_pictures((origin / part).string(), std::move(pictures.pixels), kSide, kSide, 3),
      std::move(pictures.labels), cifar_class_names(classes));
}

std::vector<Domain> open_cifar10(const CifarOptions& options) {
  require_option("cifar10", "path", options.path);
  return {{"cifar10", open_cifar(options.path, 10, options.split)}};
}

std::vector<Domain> open_cifar100(const CifarOptions& options) {
  require_option("cifar100", "path", options.path);
  return {{"cifar100", open_cifar(options.path, 100, options.split)}};
}

}  // namespace gala
