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

namespace gala {

/// What NumPy's `np.save` wrote, seen through a memory map: any of bool, int8..int64,
/// uint8..uint64, float16, float32, float64; little-endian, C order.
struct NpyArray {
  std::string type;                    ///< NumPy's code: "|u1", "<i8", "<f4", ...
  std::vector<std::int64_t> shape;     ///< empty for a single number
  std::span<const std::byte> data;     ///< exactly the elements
  std::shared_ptr<const void> keeper;  ///< keeps the map alive

  std::int64_t element_size() const;
  std::int64_t count() const;  ///< elements in all
};

/// Reads format versions 1, 2 and 3. Throws FormatError for a header that is not one, for Fortran
/// order, foreign byte order, object arrays, and for a file whose size is not what its shape needs.
NpyArray read_npy(const std::filesystem::path& path);

/// Integers of any width as int64; throws FormatError when the array is not one-dimensional or not
/// of integers, or when a value is beyond int64. `path` is for messages.
std::vector<std::int64_t> read_npy_integers(const NpyArray& array, const std::string& path);

/// Writes version 1, atomically. `write` puts exactly the elements of `shape` into the stream.
void write_npy(const std::filesystem::path& path, std::string_view type,
               std::span<const std::int64_t> shape,
               const std::function<void(std::ostream&)>& write);

}  // namespace gala
