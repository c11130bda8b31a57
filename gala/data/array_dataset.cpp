#include "gala/data/array_dataset.h"

#include <algorithm>

#include "gala/data/npy.h"

namespace gala {

PictureArray PictureArray::rows(std::int64_t first, std::int64_t rows) const {
  PictureArray part = *this;
  part.count = rows;
  if (bytes) part.bytes = bytes + first * values_each();
  if (floats) part.floats = floats + first * values_each();
  return part;
}

PictureArray own_pictures(std::string path, std::vector<std::uint8_t> pixels, std::int64_t height,
                          std::int64_t width, std::int64_t channels) {
  auto kept = std::make_shared<const std::vector<std::uint8_t>>(std::move(pixels));
  PictureArray pictures{.path = std::move(path),
                        .height = height,
                        .width = width,
                        .channels = channels,
                        .bytes = kept->data(),
                        .keeper = kept};
  pictures.count = static_cast<std::int64_t>(kept->size()) / pictures.values_each();
  return pictures;
}

PictureArray read_picture_array(const std::filesystem::path& path) {
  const NpyArray array = read_npy(path);
  const auto& shape = array.shape;
  PictureArray pictures{.path = path.string(), .keeper = array.keeper};
  const auto refuse = [&] {
    throw FormatError(
        path.string(),
        fmt::format("expected uint8 of shape (N, H, W, 3 or 1) or float32 of shape (N, 3 "
                    "or 1, H, W), found {} of shape ({})",
                    array.type, fmt::join(shape, ", ")));
  };
  if (array.type == "|u1" && (shape.size() == 3 || shape.size() == 4)) {
    pictures.count = shape[0], pictures.height = shape[1], pictures.width = shape[2];
    pictures.channels = shape.size() == 4 ? shape[3] : 1;
    pictures.bytes = reinterpret_cast<const std::uint8_t*>(array.data.data());
  } else if (array.type == "<f4" && shape.size() == 4) {
    pictures.count = shape[0], pictures.channels = shape[1];
    pictures.height = shape[2], pictures.width = shape[3];
    pictures.floats = reinterpret_cast<const float*>(array.data.data());
    // NumPy aligns the data; a header of odd length is somebody's trick.
    if (reinterpret_cast<std::uintptr_t>(pictures.floats) % alignof(float) != 0) {
      throw FormatError(path.string(), "the elements are not aligned");
    }
  } else {
    refuse();
  }
  if (pictures.channels != 1 && pictures.channels != 3) refuse();
  if (pictures.count > 0) {
    if (pictures.height == 0 || pictures.width == 0 ||
        pictures.height > kLargestPicture / pictures.width) {
      refuse();
    }
  }
  return pictures;
}

ArrayDataset::ArrayDataset(PictureArray pictures, std::vector<std::int64_t> labels,
                           std::vector<std::string> class_names)
    : pictures_(std::move(pictures)), labels_(std::move(labels)) {
  if (labels_.empty()) return;
  check_labels(labels_, pictures_.count, pictures_.path);
  std::int64_t classes = *std::max_element(labels_.begin(), labels_.end()) + 1;
  if (!class_names.empty()) {
    const auto named = static_cast<std::int64_t>(class_names.size());
    if (classes > named) {
      fail<ConfigError>("{}: label {} is out of range (there are {} classes)", pictures_.path,
                        classes - 1, named);
    }
    classes = named;
  }
  set_classes(classes, std::move(class_names));
}

std::int64_t ArrayDataset::label(std::int64_t index) const {
  return labels_.empty() ? -1 : labels_[static_cast<std::size_t>(index)];
}

std::array<std::int64_t, 2> ArrayDataset::plane_size() const {
  if (!pictures_.floats) return {0, 0};
  return {pictures_.height, pictures_.width};
}

void ArrayDataset::read(std::int64_t index, Image& into) const {
  const std::int64_t area = pictures_.height * pictures_.width;
  if (pictures_.floats) {
    const float* from = pictures_.floats + index * pictures_.values_each();
    into.height = pictures_.height, into.width = pictures_.width;
    into.pixels.clear();
    into.planes.resize(static_cast<std::size_t>(area * 3));
    for (std::int64_t c = 0; c < 3; ++c) {
      std::copy_n(pictures_.channels == 3 ? from + c * area : from, area,
                  into.planes.data() + c * area);
    }
    return;
  }
  const std::uint8_t* from = pictures_.bytes + index * pictures_.values_each();
  into.shape_pixels(pictures_.height, pictures_.width);
  std::uint8_t* to = into.pixels.data();
  if (pictures_.channels == 3) {
    std::copy_n(from, area * 3, to);
  } else {
    for (std::int64_t i = 0; i < area; ++i, to += 3) to[0] = to[1] = to[2] = from[i];
  }
}

std::string ArrayDataset::item_name(std::int64_t index) const {
  return fmt::format("{}[{}]", pictures_.path, index);
}

void ArrayDataset::hash_item(std::int64_t index, Sha256& hash) const {
  const auto each = static_cast<std::size_t>(pictures_.values_each());
  if (pictures_.floats) {
    hash.update(pictures_.floats + static_cast<std::size_t>(index) * each, each * sizeof(float));
  } else {
    hash.update(pictures_.bytes + static_cast<std::size_t>(index) * each, each);
  }
}

void require_option(std::string_view set, std::string_view name, const std::string& value) {
  if (value.empty()) fail<ConfigError>("data set {} needs {}=PATH", set, name);
}

std::vector<std::int64_t> read_labels(const std::filesystem::path& path, std::int64_t count) {
  std::vector<std::int64_t> labels = read_npy_integers(read_npy(path), path.string());
  check_labels(labels, count, path.string());
  return labels;
}

std::vector<Domain> open_arrays(const ArraysOptions& options) {
  require_option("arrays", "images", options.images);
  PictureArray pictures = read_picture_array(options.images);
  std::vector<std::int64_t> labels;
  if (!options.labels.empty()) labels = read_labels(options.labels, pictures.count);
  return {{std::filesystem::path(options.images).stem().string(),
           std::make_shared<ArrayDataset>(std::move(pictures), std::move(labels))}};
}

}  // namespace gala
