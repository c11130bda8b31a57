#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gala/data/dataset.h"
#include "gala/data/npy.h"

namespace gala {

/// How the values of a picture lie in an array.
enum class PictureValues {
  kBytes,    ///< height x width x channels of uint8; the others channels x height x width
  kHalves,   ///< float16
  kFloats,   ///< float32
  kDoubles,  ///< float64
};

/// Pictures of one size, one after another in memory or in a file, from which each is read when it is
/// asked for.
struct PictureArray {
  std::string path;  ///< where they come from
  std::int64_t count = 0, height = 0, width = 0;
  std::int64_t channels = 3;  ///< 1 or 3; one channel is repeated to three
  PictureValues values = PictureValues::kBytes;
  std::shared_ptr<const std::byte> memory = nullptr;  ///< or else
  std::shared_ptr<const NpyFile> file = nullptr;
  std::int64_t first = 0;  ///< the row at which these begin

  std::int64_t values_each() const { return height * width * channels; }
  /// Rows begin .. begin + rows - 1, sharing memory or file. Row numbers begin again at 0.
  PictureArray rows(std::int64_t begin, std::int64_t rows) const;
  /// The bytes of a picture as they lie there.
  void read(std::int64_t index, std::span<std::byte> into) const;
};

/// Takes over pixels that were read into memory.
PictureArray own_pictures(std::string path, std::vector<std::uint8_t> pixels, std::int64_t height,
                          std::int64_t width, std::int64_t channels);

/// A .npy file as pictures: uint8 of shape (N, H, W), (N, H, W, 1) or (N, H, W, 3), or float16,
/// float32 or float64 of shape (N, 1, H, W) or (N, 3, H, W). One in Fortran order is read to memory.
/// Throws FormatError for another type or shape, and for three dimensions that may be one picture.
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
  void read_floats(std::int64_t index, std::vector<std::byte>& scratch, float* into) const;

  PictureArray pictures_;
  std::vector<std::int64_t> labels_;
};

struct ArraysOptions {
  std::string images;
  std::string labels;
  static constexpr std::array<std::string_view, 2> kPaths = {"images", "labels"};
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
