#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gala/data/dataset.h"

namespace gala {

/// Side of what is left of a picture.
inline constexpr std::int64_t kImageNetSide = 224;

/// What the published code does to a picture of ImageNet before it corrupts it: the short side becomes 256
/// pixels, aspect kept, and the middle 224 x 224 are taken, both as torchvision does to PIL's pictures.
/// A picture that has 224 x 224 pixels is taken for one to which this was done, and left as it is.
void crop_as_imagenet(Image& image, const std::string& name);

/// Another set, so cropped while it is read. What an item hashes to is kept: many sets may lie over this
/// one, and ask for it each.
class ImageNetCrop : public Dataset {
 public:
  explicit ImageNetCrop(std::shared_ptr<const Dataset> whole);
  std::int64_t size() const override { return whole_->size(); }
  std::int64_t label(std::int64_t index) const override { return whole_->label(index); }
  void read(std::int64_t index, Image& into) const override;
  std::string item_name(std::int64_t index) const override { return whole_->item_name(index); }
  bool in_files() const override { return whole_->in_files(); }
  void hash_item(std::int64_t index, Sha256& hash) const override;

 private:
  std::shared_ptr<const Dataset> whole_;
  mutable std::mutex mutex_;
  mutable std::vector<std::string> hashes_;
};

}  // namespace gala
