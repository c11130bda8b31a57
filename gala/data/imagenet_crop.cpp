#include "gala/data/imagenet_crop.h"

#include <algorithm>

#include "gala/base/error.h"
#include "gala/data/resize.h"

namespace gala {
namespace {

constexpr std::int64_t kShortSide = 256;

/// Half of what is left over, to the even of two whole numbers, as Python rounds.
std::int64_t begin_of_middle(std::int64_t size) {
  const std::int64_t over = size - kImageNetSide, half = over / 2;
  return over % 2 == 0 || half % 2 == 0 ? half : half + 1;
}

}  // namespace

void crop_as_imagenet(Image& image, const std::string& name) {
  if (!image.planes.empty()) {
    fail<ConfigError>("{}: {}x{} floats cannot be cropped (expected a picture of bytes)", name,
                      image.height, image.width);
  }
  if (image.height == kImageNetSide && image.width == kImageNetSide) return;
  const std::int64_t shorter = std::min(image.height, image.width);
  const std::int64_t height = kShortSide * image.height / shorter;
  const std::int64_t width = kShortSide * image.width / shorter;
  if (height > kLargestPicture / width) {
    fail<ConfigError>("{}: a picture of {}x{} is too narrow to be resized to a short side of {}",
                      name, image.height, image.width, kShortSide);
  }
  Resizer resizer;
  const PixelView whole =
      resizer.resize({image.pixels.data(), image.height, image.width, image.width * 3}, height,
                     width, Filter::kBilinear);
  const std::int64_t top = begin_of_middle(height), left = begin_of_middle(width);
  std::vector<std::uint8_t> middle(static_cast<std::size_t>(kImageNetSide * kImageNetSide * 3));
  for (std::int64_t y = 0; y < kImageNetSide; ++y) {
    const std::uint8_t* row = whole.pixels + (top + y) * whole.stride + 3 * left;
    std::copy(row, row + 3 * kImageNetSide, middle.data() + y * 3 * kImageNetSide);
  }
  image.shape_pixels(kImageNetSide, kImageNetSide);
  image.pixels = std::move(middle);
}

ImageNetCrop::ImageNetCrop(std::shared_ptr<const Dataset> whole)
    : whole_(std::move(whole)), hashes_(static_cast<std::size_t>(whole_->size())) {
  set_classes(whole_->classes(), whole_->class_names());
}

void ImageNetCrop::read(std::int64_t index, Image& into) const {
  whole_->read(index, into);
  crop_as_imagenet(into, item_name(index));
}

void ImageNetCrop::hash_item(std::int64_t index, Sha256& hash) const {
  const std::scoped_lock lock(mutex_);
  std::string& known = hashes_[static_cast<std::size_t>(index)];
  if (known.empty()) {
    Sha256 own;
    whole_->hash_item(index, own);
    known = own.hex();
  }
  hash.update(known);
}

}  // namespace gala
