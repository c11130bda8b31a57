#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "gala/data/dataset.h"

namespace gala {

/// Pictures of one size that lie one after another in memory or in a memory map.
struct PictureArray {
  std::string path;  ///< where they come from
  std::int64_t count = 0, height = 0, width = 0;
  std::int64_t channels = 3;            ///< 1 or 3; one channel is repeated to three
  const std::uint8_t* bytes = nullptr;  ///< count x height x width x channels, or
  const float* floats = nullptr;        ///< count x channels x height x width
  std::shared_ptr<const void> keeper;   ///< keeps the memory alive

  std::int64_t values_each() const { return height * width * channels; }
  /// Rows first .. first + rows - 1, sharing the memory. Row numbers begin again at 0.
  PictureArray rows(std::int64_t first, std::int64_t rows) const;
};

/// Takes over pixels that were read into memory.
PictureArray own_pictures(std::string path, std::vector<std::uint8_t> pixels, std::int64_t height,
                          std::int64_t width, std::int64_t channels);

/// A .npy file as pictures: uint8 of shape (N, H, W), (N, H, W, 1) or (N, H, W, 3), or float32 of
/// shape (N, 1, H, W) or (N, 3, H, W). Throws FormatError for another type or shape.
PictureArray read_picture_array(const std::filesystem::path& path);

/// Pictures with a label each, or with none at all.
class ArrayDataset : public Dataset {
 public:
  /// `labels` is empty or has one for each picture. Throws ConfigError when a label is not below
  /// the number of names, if there are names.
  ArrayDataset(PictureArray pictures, std::vector<std::int64_t> labels,
               std::vector<std::string> class_names = {});

  std::int64_t size() const override { return pictures_.count; }
  std::int64_t label(std::int64_t index) const override;
  void read(std::int64_t index, Image& into) const override;
  std::string item_name(std::int64_t index) const override;
  std::array<std::int64_t, 2> plane_size() const override;
  void hash_item(std::int64_t index, Sha256& hash) const override;

 private:
  PictureArray pictures_;
  std::vector<std::int64_t> labels_;
};

struct ArraysOptions {
  std::string images;
  std::string labels;
  template <class Visitor>
  static void visit(Visitor&& option) {
    option("images", &ArraysOptions::images, ".npy file of the pictures");
    option("labels", &ArraysOptions::labels, ".npy file of the labels; none: unlabelled");
  }
};
std::vector<Domain> open_arrays(const ArraysOptions& options);

/// Labels from a .npy file, checked against the number of pictures.
std::vector<std::int64_t> read_labels(const std::filesystem::path& path, std::int64_t count);

/// Throws ConfigError when an option that names a file or folder is empty.
void require_option(std::string_view set, std::string_view name, const std::string& value);

}  // namespace gala
