#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "gala/view/augment_numbers.h"

namespace gala {

// Dense images on a GPU. What was drawn is brought from page-locked memory to its place on the device first,
// by queued work too. Undefined where there is no such place, or where this library was built without CUDA.

at::Tensor cuda_augmented(const at::Tensor& images, const AugmentTask& task,
                          const AugmentNumbers* drawn, AugmentNumbers* place);

/// Cut into grid x grid patches and shuffled; the sides are multiples of `grid`.
at::Tensor cuda_shuffled(const at::Tensor& images, std::int64_t grid, const std::uint64_t* seed,
                         std::uint64_t* place);

/// Doubles that were drawn, on their place on the device.
at::Tensor cuda_numbers(const double* drawn, double* place, std::int64_t count, at::Device device);

}  // namespace gala
