#include "gala/view/patches.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>

#include "gala/base/random.h"
#include "gala/view/batch.h"
#include "gala/view/cuda_views.h"
#include "gala/view/patch_order.h"
#include "gala/view/ranges.h"

namespace gala {
namespace {

/// One image, in host memory.
void shuffle_image(const PixelLayout& layout, std::int64_t height, std::int64_t width,
                   std::int64_t grid, const std::int16_t* order, const float* input,
                   float* output) {
  const std::int64_t tall = height / grid, wide = width / grid;
  for (std::int64_t plane = 0; plane < layout.planes; ++plane) {
    for (std::int64_t row = 0; row < height; ++row) {
      for (std::int64_t column = 0; column < grid; ++column) {
        const std::int64_t from = order[row / tall * grid + column];
        const std::int64_t from_row = from / grid * tall + row % tall;
        const std::int64_t begin = (plane * height + from_row) * width + from % grid * wide;
        std::copy_n(input + begin * layout.step, wide * layout.step, output);
        output += wide * layout.step;
      }
    }
  }
}

at::Tensor shuffled_by_host(const at::Tensor& images, std::int64_t grid, std::uint64_t seed) {
  at::Tensor result = at::empty_like(images);
  const PixelLayout layout = pixel_layout(images);
  const float* input = images.const_data_ptr<float>();
  auto* output = result.mutable_data_ptr<float>();
  const std::int64_t height = images.size(2), width = images.size(3);
  const std::int64_t size = images.size(1) * height * width;
  at::parallel_for(0, images.size(0), 8, [&](std::int64_t begin, std::int64_t end) {
    std::array<std::int16_t, kMostPatches> order;
    for (std::int64_t image = begin; image < end; ++image) {
      order_patches(seed, image, static_cast<std::int32_t>(grid * grid), order.data());
      shuffle_image(layout, height, width, grid, order.data(), input + image * size,
                    output + image * size);
    }
  });
  return result;
}

at::Tensor resized(const at::Tensor& images, std::int64_t height, std::int64_t width) {
  return at::_upsample_bilinear2d_aa(images, {height, width}, /*align_corners=*/false)
      .contiguous(images.suggest_memory_format());
}

}  // namespace

PatchesView::PatchesView(const Options& options) : options_(options) {
  check_ranges(view_ranges(), "view patches", options);
}

void PatchesView::attach(at::Device device, const Preprocessing&) {
  seeds_.attach(device);
}

void PatchesView::draw(std::uint64_t seed, std::int64_t number, int count) {
  std::uint64_t* seeds = seeds_.begin(count);
  for (int which = 0; which < count; ++which) {
    seeds[which] = Random(seed, "shuffled patches",
                          {static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(which)})
                       .next();
  }
}

at::Tensor PatchesView::shuffled(const at::Tensor& images, int which) const {
  if (images.is_cuda() && images.numel() > 0) {
    const at::Tensor result =
        cuda_shuffled(images, options_.grid, seeds_.host(which), seeds_.device(which));
    if (result.defined()) return result;
  }
  return shuffled_by_host(images.cpu(), options_.grid, *seeds_.host(which)).to(images.device());
}

at::Tensor PatchesView::look(const at::Tensor& images, int which) {
  const at::Tensor dense = checked_images(images);
  const std::int64_t height = dense.size(2), width = dense.size(3), grid = options_.grid;
  if (height < grid || width < grid) {
    fail("view patches: {} x {} pixels cannot be cut into {} x {} patches", height, width, grid,
         grid);
  }
  if (height % grid == 0 && width % grid == 0) return shuffled(dense, which);
  if (dense.size(0) == 0) return at::empty_like(dense);
  const at::Tensor smaller = resized(dense, height / grid * grid, width / grid * grid);
  return resized(shuffled(smaller, which), height, width);
}

}  // namespace gala
