#include "gala/model/raw_tensor.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <bit>

namespace gala {

static_assert(std::endian::native == std::endian::little, "weight files are little-endian");

Blob aligned(const Blob& blob, std::size_t alignment) {
  if (reinterpret_cast<std::uintptr_t>(blob.bytes.data()) % alignment == 0) return blob;
  const auto copy =
      std::make_shared<std::vector<unsigned char>>(blob.bytes.begin(), blob.bytes.end());
  return {{copy->data(), copy->size()}, copy};
}

at::Tensor tensor_over(const Blob& blob, at::ScalarType type,
                       const std::vector<std::int64_t>& sizes,
                       const std::vector<std::int64_t>& strides, std::int64_t offset) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return at::empty(sizes, type);
  const auto element_size = c10::elementSize(type);
  unsigned char* data = blob.bytes.data() + static_cast<std::size_t>(offset) * element_size;
  // A byte other than 0 and 1 is no C++ bool, so booleans are read as numbers.
  const auto stored_type = type == at::kBool ? at::kByte : type;
  const auto tensor = at::from_blob(
      data, sizes, strides, [owner = blob.owner](void*) {}, at::TensorOptions(stored_type));
  return type == at::kBool ? tensor.ne(0) : tensor;
}

std::optional<std::vector<std::int64_t>> contiguous_strides(const std::vector<std::int64_t>& sizes,
                                                            std::int64_t element_size) {
  constexpr std::size_t kMostDimensions = 64;
  if (sizes.size() > kMostDimensions) return std::nullopt;
  std::vector<std::int64_t> strides(sizes.size());
  std::int64_t elements = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] < 0) return std::nullopt;
    strides[i] = elements;
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(elements, std::max<std::int64_t>(sizes[i], 1), &elements) ||
        __builtin_mul_overflow(elements, element_size, &bytes)) {
      return std::nullopt;
    }
  }
  return strides;
}

}  // namespace gala
