#include "gala/base/cuda_check.h"
#include "gala/model/cuda_norm_grid.h"

namespace gala {
namespace {

constexpr int kThreads = kNormThreads;

/// A channel's statistics.
struct Channel {
  float mean, variance;
};

/// The running statistics with the batch taken in; `taken` is by which share.
__device__ Channel with_batch(const NormAdaption& task, float share, std::int64_t channel,
                              float& taken) {
  const float mean = task.batch_mean[channel], variance = task.batch_variance[channel];
  const Channel running{task.running_mean[channel], task.running_variance[channel]};
  // A broken picture must not stay in the statistics for ever.
  taken = isfinite(mean) && isfinite(variance) ? share : 0.0F;
  if (taken == 0) return running;
  return {running.mean + (mean - running.mean) * taken,
          running.variance + (variance - running.variance) * taken};
}

__device__ Channel source_of(const NormAdaption& task, std::int64_t channel) {
  const float* mean = task.source_mean ? task.source_mean : task.running_mean;
  const float* variance = task.source_variance ? task.source_variance : task.running_variance;
  return {mean[channel], variance[channel]};
}

/// The sum over the threads of a block, for all of them.
__device__ double block_total(double value) {
  __shared__ double sums[kThreads];
  sums[threadIdx.x] = value;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  __syncthreads();
  return sums[0];
}

/// One block: a layer has few channels, and first it is asked how far all of them are.
__global__ void __launch_bounds__(kThreads) adapt(NormAdaption task) {
  const float images = task.counted ? static_cast<float>(*task.counted) : task.images;
  const float spread = task.spread ? *task.spread : 1.0F;
  const float share = fminf(images / task.horizon / spread, 1.0F);
  float taken = 0;
  double distances = 0;
  for (std::int64_t c = threadIdx.x; c < task.channels; c += kThreads) {
    const Channel next = with_batch(task, share, c, taken), source = source_of(task, c);
    const float wide = source.variance + task.epsilon, apart = next.mean - source.mean;
    const float ratio = logf((next.variance + task.epsilon) / wide);
    distances += apart * apart / wide + 0.5F * ratio * ratio;
  }
  const auto distance =
      static_cast<float>(block_total(distances) / static_cast<double>(task.channels));
  const float weight = task.tolerance > 0 ? distance / (distance + task.tolerance) : 1.0F;
  if (threadIdx.x == 0) *task.weight = weight;
  for (std::int64_t c = threadIdx.x; c < task.channels; c += kThreads) {
    const Channel next = with_batch(task, share, c, taken), source = source_of(task, c);
    task.mean[c] = source.mean + (next.mean - source.mean) * weight;
    task.variance[c] = source.variance + (next.variance - source.variance) * weight;
    task.pull[c] = taken * weight;
    if (!task.update) continue;
    task.running_mean[c] = next.mean;
    task.running_variance[c] = next.variance;
  }
}

}  // namespace

void queue_norm_adaption(const NormAdaption& task, cudaStream_t stream) {
  adapt<<<1, kThreads, 0, stream>>>(task);
  check_cuda(cudaGetLastError());
}

}  // namespace gala
