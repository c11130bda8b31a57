#include "gala/tensor/norms.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace gala {
namespace {

double sum_of_squares(const float* data, std::int64_t size) {
  double lanes[8] = {};
  std::int64_t i = 0;
  for (; i + 8 <= size; i += 8) {
    for (int lane = 0; lane < 8; ++lane) {
      const double x = data[i + lane];
      lanes[lane] += x * x;
    }
  }
  double sum = 0;
  for (; i < size; ++i) sum += static_cast<double>(data[i]) * data[i];
  for (const double lane : lanes) sum += lane;
  return sum;
}

}  // namespace

double squared_norm(const at::Tensor& tensor) {
  if (!tensor.is_cpu()) return tensor.to(at::kDouble).square().sum().item<double>();
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

double norm(const Gradients& gradients) {
  double sum = 0;
  for (const at::Tensor& gradient : gradients.tensors) {
    if (gradient.defined()) sum += squared_norm(gradient);
  }
  return std::sqrt(sum);
}

}  // namespace gala
