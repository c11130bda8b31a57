#include "gala/tensor/norms.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <vector>

#include "gala/layer/lanes.h"

namespace gala {
double squared_norm(const at::Tensor& tensor) {
  if (!tensor.is_cpu()) {
    const double norm =
        at::linalg_vector_norm(tensor, 2, at::OptionalIntArrayRef(), false, at::kDouble)
            .item<double>();
    return norm * norm;
  }
  constexpr std::int64_t kChunk = 32768;
  const float* data = tensor.const_data_ptr<float>();
  const std::int64_t size = tensor.numel(), chunks = (size + kChunk - 1) / kChunk;
  std::vector<double> parts(static_cast<std::size_t>(chunks));
  at::parallel_for(0, chunks, 1, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t i = from; i < to; ++i) {
      parts[i] = sum_of_squares(data + i * kChunk, std::min(kChunk, size - i * kChunk));
    }
  });
  double sum = 0;
  for (const double part : parts) sum += part;
  return sum;
}

}  // namespace gala
