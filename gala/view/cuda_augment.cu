#include "gala/base/cuda_check.h"
#include "gala/view/augment_math.h"
#include "gala/view/cuda_view_kernels.h"

namespace gala {
namespace {

constexpr int kThreads = 256;
/// Pixels of one image whose colours a block changes: four for each thread.
constexpr int kEach = 4;
constexpr int kChunk = kThreads * kEach;
/// The part of the result that a block makes where there is a blur: two rows for each thread.
constexpr int kTileWidth = 32;
constexpr int kTileHeight = 16;
constexpr int kReach = 2;
constexpr int kWide = kTileWidth + 2 * kReach;
constexpr int kTall = kTileHeight + 2 * kReach;

__host__ __device__ constexpr int cut(int size, int piece) {
  return (size + piece - 1) / piece;
}

__host__ __device__ int chunks_of(const AugmentTask& task) {
  return cut(task.height * task.width, kChunk);
}

/// The sum over a block, for all of its threads; the order never changes.
__device__ double block_sum(double value) {
  __shared__ double warps[kThreads / 32];
  for (int offset = 16; offset > 0; offset /= 2) {
    value += __shfl_down_sync(0xffffffffU, value, offset);
  }
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  double sum = 0;
  for (const double warp : warps) sum += warp;
  return sum;
}

__device__ Rgb read_pixel(const AugmentTask& task, const float* input, int image, int pixel) {
  const float* values = input + 3 * image * task.height * task.width + pixel * task.pixel_step;
  float colours[3];
#pragma unroll
  for (int c = 0; c < 3; ++c) {
    colours[c] = clipped(values[task.channel[c] * task.channel_step] * task.std[c] + task.mean[c]);
  }
  return {colours[0], colours[1], colours[2]};
}

__device__ float4 packed(const Rgb& pixel) {
  return make_float4(pixel.red, pixel.green, pixel.blue, 0);
}

__device__ int contrast_turn(const AugmentNumbers& drawn) {
  int turn = 0;
  while (drawn.order[turn] != kContrast) ++turn;
  return turn;
}

/// The colour turns `begin` .. `end`-1.
__device__ Rgb turned_by(Rgb pixel, const AugmentNumbers& drawn, int begin, int end,
                         float mean_grey) {
  for (int i = begin; i < end; ++i) pixel = turned(pixel, drawn.order[i], drawn, mean_grey);
  return pixel;
}

/// Colours of images that are no larger than a chunk: a block for each, which keeps it in registers.
__global__ void __launch_bounds__(kThreads)
    colour_small(const __grid_constant__ AugmentTask task, const AugmentNumbers* __restrict__ drawn,
                 const float* __restrict__ input, float4* __restrict__ work) {
  const int image = blockIdx.x, pixels = task.height * task.width;
  const int contrast = contrast_turn(*drawn);
  Rgb mine[kEach];
  double greys = 0;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int pixel = i * kThreads + threadIdx.x;
    if (pixel >= pixels) continue;
    mine[i] = turned_by(read_pixel(task, input, image, pixel), *drawn, 0, contrast, 0);
    greys += grey_of(mine[i]);
  }
  const auto mean = static_cast<float>(block_sum(greys) / pixels);
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int pixel = i * kThreads + threadIdx.x;
    if (pixel >= pixels) continue;
    work[image * pixels + pixel] = packed(turned_by(mine[i], *drawn, contrast, kColourTurns, mean));
  }
}

/// Colours until contrast's turn comes, and the sum of greys of each chunk.
__global__ void __launch_bounds__(kThreads)
    colour_first(const __grid_constant__ AugmentTask task, const AugmentNumbers* __restrict__ drawn,
                 const float* __restrict__ input, float4* __restrict__ work, double* parts) {
  const int chunks = chunks_of(task), pixels = task.height * task.width;
  const int image = blockIdx.x / chunks, begin = blockIdx.x % chunks * kChunk;
  const int contrast = contrast_turn(*drawn);
  double greys = 0;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int pixel = begin + i * kThreads + threadIdx.x;
    if (pixel >= pixels) continue;
    const Rgb here = turned_by(read_pixel(task, input, image, pixel), *drawn, 0, contrast, 0);
    greys += grey_of(here);
    work[image * pixels + pixel] = packed(here);
  }
  const double sum = block_sum(greys);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

/// Contrast and what follows it.
__global__ void __launch_bounds__(kThreads)
    colour_rest(const __grid_constant__ AugmentTask task, const AugmentNumbers* __restrict__ drawn,
                const double* __restrict__ parts, float4* __restrict__ work) {
  const int chunks = chunks_of(task), pixels = task.height * task.width;
  const int image = blockIdx.x / chunks, begin = blockIdx.x % chunks * kChunk;
  const int contrast = contrast_turn(*drawn);
  double greys = 0;
  for (int i = threadIdx.x; i < chunks; i += kThreads) greys += parts[image * chunks + i];
  const auto mean = static_cast<float>(block_sum(greys) / pixels);
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int pixel = begin + i * kThreads + threadIdx.x;
    if (pixel >= pixels) continue;
    const float4 here = work[image * pixels + pixel];
    work[image * pixels + pixel] =
        packed(turned_by({here.x, here.y, here.z}, *drawn, contrast, kColourTurns, mean));
  }
}

/// The result's pixel before blur and noise. `picture` is the image's part of `work`.
__device__ Rgb sampled_at(const AugmentTask& task, const AugmentNumbers& drawn,
                          const float4* __restrict__ picture, int row, int column) {
  const Taps taps = taps_at(task, drawn, row, column);
  const float4 a = picture[taps.pixel[0]], b = picture[taps.pixel[1]], c = picture[taps.pixel[2]],
               d = picture[taps.pixel[3]];
  const float(&weight)[4] = taps.weight;
  return {a.x * weight[0] + b.x * weight[1] + c.x * weight[2] + d.x * weight[3],
          a.y * weight[0] + b.y * weight[1] + c.y * weight[2] + d.y * weight[3],
          a.z * weight[0] + b.z * weight[1] + c.z * weight[2] + d.z * weight[3]};
}

/// Five pixels `step` apart, from `from` on.
__device__ Rgb blurred_along(const AugmentNumbers& drawn, const Rgb* from, int step) {
  const Rgb &a = from[0], &b = from[step], &c = from[2 * step], &d = from[3 * step],
            &e = from[4 * step];
  return {blurred(drawn.blur, a.red, b.red, c.red, d.red, e.red),
          blurred(drawn.blur, a.green, b.green, c.green, d.green, e.green),
          blurred(drawn.blur, a.blue, b.blue, c.blue, d.blue, e.blue)};
}

/// Noise, clip, preprocessing.
__device__ void write_pixel(const AugmentTask& task, const AugmentNumbers& drawn, Rgb here,
                            int image, int pixel, float* __restrict__ output) {
  const int pixels = task.height * task.width;
  if (task.noise > 0) {
    const Rgb noise = noise_at(drawn, static_cast<std::uint32_t>(image * pixels + pixel));
    here = {here.red + task.noise * noise.red, here.green + task.noise * noise.green,
            here.blue + task.noise * noise.blue};
  }
  const float colours[3] = {here.red, here.green, here.blue};
  float* values = output + 3 * image * pixels + pixel * task.pixel_step;
#pragma unroll
  for (int c = 0; c < 3; ++c) {
    values[task.channel[c] * task.channel_step] =
        (clipped(colours[c]) - task.mean[c]) / task.std[c];
  }
}

__global__ void __launch_bounds__(kThreads)
    place(const __grid_constant__ AugmentTask task, const AugmentNumbers* __restrict__ drawn,
          const float4* __restrict__ work, float* __restrict__ output) {
  const int pixels = task.height * task.width, blocks = cut(pixels, kThreads);
  const int image = blockIdx.x / blocks, pixel = blockIdx.x % blocks * kThreads + threadIdx.x;
  if (pixel >= pixels) return;
  const Rgb here =
      sampled_at(task, *drawn, work + image * pixels, pixel / task.width, pixel % task.width);
  write_pixel(task, *drawn, here, image, pixel, output);
}

__global__ void __launch_bounds__(kThreads)
    place_and_blur(const __grid_constant__ AugmentTask task,
                   const AugmentNumbers* __restrict__ drawn, const float4* __restrict__ work,
                   float* __restrict__ output) {
  __shared__ Rgb sampled[kTall * kWide], across[kTall * kTileWidth];
  const int columns = cut(task.width, kTileWidth), rows = cut(task.height, kTileHeight);
  const int image = blockIdx.x / (rows * columns), tile = blockIdx.x % (rows * columns);
  const int top = tile / columns * kTileHeight, left = tile % columns * kTileWidth;
  const float4* picture = work + image * task.height * task.width;
  for (int i = threadIdx.x; i < kTall * kWide; i += kThreads) {
    const int row = top + i / kWide - kReach, column = left + i % kWide - kReach;
    if (row < task.height + kReach && column < task.width + kReach) {
      sampled[i] = sampled_at(task, *drawn, picture, row, column);
    }
  }
  __syncthreads();
  // Beyond the picture this reads what nobody wrote, and nobody reads what it makes of it.
  for (int i = threadIdx.x; i < kTall * kTileWidth; i += kThreads) {
    const int row = i / kTileWidth, column = i % kTileWidth;
    across[i] = blurred_along(*drawn, sampled + row * kWide + column, 1);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kTileHeight * kTileWidth; i += kThreads) {
    const int row = top + i / kTileWidth, column = left + i % kTileWidth;
    if (row >= task.height || column >= task.width) continue;
    write_pixel(task, *drawn, blurred_along(*drawn, across + i, kTileWidth), image,
                row * task.width + column, output);
  }
}

}  // namespace

std::int64_t augment_parts(const AugmentTask& task) {
  const int chunks = chunks_of(task);
  return chunks == 1 ? 0 : static_cast<std::int64_t>(task.images) * chunks;
}

void queue_augment(const AugmentTask& task, const AugmentNumbers* drawn, const float* input,
                   float* work, double* parts, float* output, cudaStream_t stream) {
  const int chunks = chunks_of(task);
  auto* pictures = reinterpret_cast<float4*>(work);
  if (chunks == 1) {
    colour_small<<<task.images, kThreads, 0, stream>>>(task, drawn, input, pictures);
  } else {
    colour_first<<<task.images * chunks, kThreads, 0, stream>>>(task, drawn, input, pictures,
                                                                parts);
    colour_rest<<<task.images * chunks, kThreads, 0, stream>>>(task, drawn, parts, pictures);
  }
  if (task.blur) {
    const int tiles = cut(task.height, kTileHeight) * cut(task.width, kTileWidth);
    place_and_blur<<<task.images * tiles, kThreads, 0, stream>>>(task, drawn, pictures, output);
  } else {
    const int blocks = cut(task.height * task.width, kThreads);
    place<<<task.images * blocks, kThreads, 0, stream>>>(task, drawn, pictures, output);
  }
  check_cuda(cudaGetLastError());
}

}  // namespace gala
