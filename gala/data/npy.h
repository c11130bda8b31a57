#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gala/base/input_file.h"

namespace gala {

/// A .npy file whose header was read: bool, int8..int64, uint8..uint64, float16, float32 or float64,
/// in either byte order, in C or Fortran order.
struct NpyFile {
  std::shared_ptr<const InputFile> file;
  std::string type;  ///< NumPy's code in this machine's byte order: "|u1", "<f4", ...
  std::vector<std::int64_t> shape;  ///< empty for a single number
  bool fortran = false;             ///< the first index runs fastest
  bool swapped = false;             ///< the file has the other byte order
  std::uint64_t begin = 0;          ///< where the elements begin

  std::int64_t element_size() const;
  std::int64_t count() const;  ///< elements in all

  /// Fills `into`, a whole number of elements, from element `first` on, in the order of the file and in
  /// this machine's byte order. Threads may read at once. Throws FormatError.
  void read(std::int64_t first, std::span<std::byte> into) const;
  /// All elements in C order. Throws FormatError, also when memory does not hold them.
  std::vector<std::byte> read_all() const;
};

/// Reads format versions 1, 2 and 3. Throws FormatError for a header that is not one, for object
/// arrays, and for a file whose size is not what its shape needs.
NpyFile open_npy(const std::filesystem::path& path);

/// An array in memory, in C order.
struct NpyArray {
  std::string type;                 ///< as in NpyFile
  std::vector<std::int64_t> shape;  ///< empty for a single number
  std::vector<std::byte> data;      ///< exactly the elements

  std::int64_t element_size() const;
  std::int64_t count() const;  ///< elements in all
};

/// The whole of a .npy file. Throws as open_npy does.
NpyArray read_npy(const std::filesystem::path& path);

/// Whole numbers of any type as int64; throws FormatError when the array is not one-dimensional or
/// holds something else, or when a value is beyond int64. `path` is for messages.
std::vector<std::int64_t> read_npy_integers(const NpyArray& array, const std::string& path);

/// Writes version 1, atomically. `write` puts exactly the elements of `shape` into the stream.
void write_npy(const std::filesystem::path& path, std::string_view type,
               std::span<const std::int64_t> shape,
               const std::function<void(std::ostream&)>& write);

}  // namespace gala
