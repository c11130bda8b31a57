#include "gala/view/cuda_views.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <limits>

#include "gala/base/cuda_check.h"
#include "gala/view/batch.h"
#include "gala/view/cuda_view_kernels.h"

namespace gala {
namespace {

/// Not LibTorch's copy: that would note the stream with the page-locked memory, and freeing it would
/// record an event there, in a capture perhaps.
template <class Record>
void queue_fetch(const Record* drawn, Record* place, cudaStream_t stream, std::size_t count = 1) {
  check_cuda(cudaMemcpyAsync(place, drawn, count * sizeof(Record), cudaMemcpyHostToDevice, stream));
}

}  // namespace

at::Tensor cuda_augmented(const at::Tensor& images, const AugmentTask& task,
                          const AugmentNumbers* drawn, AugmentNumbers* place) {
  if (!place) return {};
  const c10::cuda::CUDAGuard guard(images.device());
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream().stream();
  queue_fetch(drawn, place, stream);
  at::Tensor result = at::empty_like(images);
  const at::Tensor work =
      at::empty({images.size(0), images.size(2), images.size(3), 4}, images.options());
  const at::Tensor parts = at::empty({augment_parts(task)}, images.options().dtype(at::kDouble));
  queue_augment(task, place, images.const_data_ptr<float>(), work.mutable_data_ptr<float>(),
                parts.mutable_data_ptr<double>(), result.mutable_data_ptr<float>(), stream);
  return result;
}

at::Tensor cuda_shuffled(const at::Tensor& images, std::int64_t grid, const std::uint64_t* seed,
                         std::uint64_t* place) {
  if (!place || images.numel() > std::numeric_limits<std::int32_t>::max()) return {};
  const c10::cuda::CUDAGuard guard(images.device());
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream().stream();
  queue_fetch(seed, place, stream);
  at::Tensor result = at::empty_like(images);
  const PixelLayout layout = pixel_layout(images);
  const auto size = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
  const PatchTask task{size(images.size(0)), size(layout.planes), size(images.size(2)),
                       size(images.size(3)), size(layout.step),   size(grid)};
  queue_shuffle(task, place, images.const_data_ptr<float>(), result.mutable_data_ptr<float>(),
                stream);
  return result;
}

at::Tensor cuda_numbers(const double* drawn, double* place, std::int64_t count, at::Device device) {
  if (!place) return {};
  const c10::cuda::CUDAGuard guard(device);
  queue_fetch(drawn, place, c10::cuda::getCurrentCUDAStream().stream(),
              static_cast<std::size_t>(count));
  return at::from_blob(place, {count}, at::TensorOptions(at::kDouble).device(device));
}

}  // namespace gala
