#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace gala {

/// Bytes and what keeps them alive.
struct Blob {
  std::span<unsigned char> bytes;
  std::shared_ptr<const void> owner;
};

/// The blob itself, or a copy where its bytes do not begin at a multiple of `alignment` (at most
/// 8).
Blob aligned(const Blob& blob, std::size_t alignment);

/// A tensor over the elements of an aligned blob, which it keeps alive. The caller has checked that
/// every element lies inside. `offset` is in elements.
at::Tensor tensor_over(const Blob& blob, at::ScalarType type,
                       const std::vector<std::int64_t>& sizes,
                       const std::vector<std::int64_t>& strides, std::int64_t offset);

/// The strides of a contiguous tensor, or nothing when the sizes are negative, more than 64, or so
/// large that the bytes (taking zeros for ones) do not fit 63 bits.
std::optional<std::vector<std::int64_t>> contiguous_strides(const std::vector<std::int64_t>& sizes,
                                                            std::int64_t element_size);

}  // namespace gala
