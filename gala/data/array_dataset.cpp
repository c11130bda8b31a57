#include "gala/data/array_dataset.h"

#include <c10/util/Half.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

namespace gala {

namespace {

std::int64_t bytes_of(PictureValues values) {
  switch (values) {
    case PictureValues::kBytes:
      return 1;
    case PictureValues::kHalves:
      return 2;
    case PictureValues::kFloats:
      return 4;
    case PictureValues::kDoubles:
      return 8;
  }
  return 0;
}

std::optional<PictureValues> values_of(const std::string& type) {
  if (type == "|u1") return PictureValues::kBytes;
  if (type == "<f2") return PictureValues::kHalves;
  if (type == "<f4") return PictureValues::kFloats;
  if (type == "<f8") return PictureValues::kDoubles;
  return std::nullopt;
}

/// The memory of a vector, which it takes over.
template <class T>
std::shared_ptr<const std::byte> keep(std::vector<T> values) {
  const auto kept = std::make_shared<const std::vector<T>>(std::move(values));
  return {kept, std::as_bytes(std::span(*kept)).data()};
}

/// What would make pictures of an array that is none as it is; empty where nothing is seen.
std::string picture_hint(const NpyFile& array) {
  const auto& shape = array.shape;
  const bool bytes = array.type == "|u1";
  const auto is_channels = [&](std::size_t i) { return shape[i] == 1 || shape[i] == 3; };
  if (!values_of(array.type)) return "; .astype(np.uint8) makes bytes of numbers from 0 to 255";
  if (shape.size() == 3 && is_channels(bytes ? 2 : 0)) return "; a[None] makes one picture of it";
  if (shape.size() == 4 && bytes && is_channels(1)) return "; a.transpose(0, 2, 3, 1) makes it so";
  if (shape.size() == 4 && !bytes && is_channels(3)) return "; a.transpose(0, 3, 1, 2) makes it so";
  return "";
}

/// Grey pictures without an axis for their channel look like one picture with it.
void refuse_one_picture(const NpyFile& array) {
  const auto& shape = array.shape;
  const bool last = shape[2] == 1 || shape[2] == 3;
  if (!last && shape[0] != 3) return;
  throw FormatError(
      array.file->path(),
      fmt::format("uint8 of shape ({}) may be one picture or {} grey ones of {} x {}: save one "
                  "picture with shape (1, H, W, {}) ({}), grey ones with shape (N, H, W, 1) "
                  "(a[..., None])",
                  fmt::join(shape, ", "), shape[0], shape[2], shape[1], last ? shape[2] : 3,
                  last ? "a[None]" : "a.transpose(1, 2, 0)[None]"));
}

template <class T>
void to_floats(std::span<const std::byte> from, float* into) {
  [[maybe_unused]] constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (std::size_t at = 0; at < from.size(); at += sizeof(T), ++into) {
    T value;
    std::memcpy(&value, from.data() + at, sizeof(T));
    if constexpr (std::is_same_v<T, double>) {
      const bool fits = !(std::abs(value) > std::numeric_limits<float>::max());
      *into = fits ? static_cast<float>(value) : (value < 0 ? -kInfinity : kInfinity);
    } else {
      *into = static_cast<float>(value);
    }
  }
}

}  // namespace

PictureArray PictureArray::rows(std::int64_t begin, std::int64_t rows) const {
  PictureArray part = *this;
  part.count = rows;
  part.first = first + begin;
  return part;
}

void PictureArray::read(std::int64_t index, std::span<std::byte> into) const {
  const std::int64_t element = (first + index) * values_each();
  if (file) return file->read(element, into);
  std::memcpy(into.data(), memory.get() + element * bytes_of(values), into.size());
}

PictureArray own_pictures(std::string path, std::vector<std::uint8_t> pixels, std::int64_t height,
                          std::int64_t width, std::int64_t channels) {
  const auto size = static_cast<std::int64_t>(pixels.size());
  PictureArray pictures{.path = std::move(path),
                        .height = height,
                        .width = width,
                        .channels = channels,
                        .memory = keep(std::move(pixels))};
  pictures.count = size / pictures.values_each();
  return pictures;
}

PictureArray read_picture_array(const std::filesystem::path& path) {
  auto array = std::make_shared<NpyFile>(open_npy(path));
  const auto& shape = array->shape;
  const auto refuse = [&] {
    throw FormatError(
        path.string(),
        fmt::format("expected uint8 of shape (N, H, W, 3 or 1) or float16, float32 or float64 of "
                    "shape (N, 3 or 1, H, W), found {} of shape ({}){}",
                    array->type, fmt::join(shape, ", "), picture_hint(*array)));
  };
  const auto values = values_of(array->type);
  PictureArray pictures{.path = path.string()};
  if (values == PictureValues::kBytes && (shape.size() == 3 || shape.size() == 4)) {
    if (shape.size() == 3) refuse_one_picture(*array);
    pictures.count = shape[0], pictures.height = shape[1], pictures.width = shape[2];
    pictures.channels = shape.size() == 4 ? shape[3] : 1;
  } else if (values && values != PictureValues::kBytes && shape.size() == 4) {
    pictures.count = shape[0], pictures.channels = shape[1];
    pictures.height = shape[2], pictures.width = shape[3];
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
  pictures.values = *values;
  if (array->fortran) {
    // A picture is scattered over the whole file.
    pictures.memory = keep(array->read_all());
  } else {
    pictures.file = std::move(array);
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
  if (pictures_.values == PictureValues::kBytes) return {0, 0};
  return {pictures_.height, pictures_.width};
}

void ArrayDataset::read_floats(std::int64_t index, std::vector<std::byte>& scratch,
                               float* into) const {
  const auto count = static_cast<std::size_t>(pictures_.values_each());
  if (pictures_.values == PictureValues::kFloats) {
    return pictures_.read(index, std::as_writable_bytes(std::span(into, count)));
  }
  scratch.resize(count * static_cast<std::size_t>(bytes_of(pictures_.values)));
  pictures_.read(index, scratch);
  pictures_.values == PictureValues::kHalves ? to_floats<c10::Half>(scratch, into)
                                             : to_floats<double>(scratch, into);
}

void ArrayDataset::read(std::int64_t index, Image& into) const {
  const std::int64_t area = pictures_.height * pictures_.width;
  if (pictures_.values != PictureValues::kBytes) {
    into.height = pictures_.height, into.width = pictures_.width;
    into.pixels.clear();
    into.planes.resize(static_cast<std::size_t>(area * 3));
    float* planes = into.planes.data();
    read_floats(index, into.encoded, planes);
    if (pictures_.channels == 1) {
      std::copy_n(planes, area, planes + area);
      std::copy_n(planes, area, planes + 2 * area);
    }
    return;
  }
  into.shape_pixels(pictures_.height, pictures_.width);
  if (pictures_.channels == 3) {
    pictures_.read(index, std::as_writable_bytes(std::span(into.pixels)));
    return;
  }
  into.encoded.resize(static_cast<std::size_t>(area));
  pictures_.read(index, into.encoded);
  std::uint8_t* to = into.pixels.data();
  for (const std::byte grey : into.encoded) {
    to[0] = to[1] = to[2] = std::to_integer<std::uint8_t>(grey);
    to += 3;
  }
}

std::string ArrayDataset::item_name(std::int64_t index) const {
  return fmt::format("{}[{}]", pictures_.path, index);
}

void ArrayDataset::hash_item(std::int64_t index, Sha256& hash) const {
  // Floats as the network sees them, however wide they are in the file.
  const auto each = static_cast<std::size_t>(pictures_.values_each());
  std::vector<std::byte> bytes;
  if (pictures_.values == PictureValues::kBytes) {
    bytes.resize(each);
    pictures_.read(index, bytes);
    hash.update(bytes.data(), each);
  } else {
    std::vector<float> values(each);
    read_floats(index, bytes, values.data());
    hash.update(values.data(), each * sizeof(float));
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
