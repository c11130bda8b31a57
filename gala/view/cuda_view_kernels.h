#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

#include "gala/view/augment_numbers.h"

namespace gala {

/// How many numbers `queue_augment` needs for sums of greys.
std::int64_t augment_parts(const AugmentTask& task);

/// All pointers lead to device memory. `work` has four floats for every pixel.
void queue_augment(const AugmentTask& task, const AugmentNumbers* drawn, const float* input,
                   float* work, double* parts, float* output, cudaStream_t stream);

/// Fewer than 2^31 numbers; a pixel of a plane is `step` of them.
struct PatchTask {
  std::uint32_t images, planes, height, width, step, grid;
};
void queue_shuffle(const PatchTask& task, const std::uint64_t* seed, const float* input,
                   float* output, cudaStream_t stream);

}  // namespace gala
