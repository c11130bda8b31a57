#include "gala/view/augment.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>
#include <limits>

#include "gala/view/batch.h"
#include "gala/view/cpu_augment.h"
#include "gala/view/cuda_views.h"
#include "gala/view/ranges.h"

namespace gala {
namespace {

AugmentTask task_for(const at::Tensor& images, const AugmentOptions& options,
                     const Preprocessing& preprocessing) {
  if (images.numel() > std::numeric_limits<std::int32_t>::max()) {
    fail("view augment: a batch of {} numbers is too large", images.numel());
  }
  AugmentTask task{};
  task.images = static_cast<std::int32_t>(images.size(0));
  task.height = static_cast<std::int32_t>(images.size(2));
  task.width = static_cast<std::int32_t>(images.size(3));
  task.pixel_step = static_cast<std::int32_t>(pixel_layout(images).step);
  task.channel_step = task.pixel_step == 1 ? task.height * task.width : 1;
  for (std::size_t c = 0; c < 3; ++c) {
    const std::size_t channel = preprocessing.channels == "bgr" ? 2 - c : c;
    task.channel[c] = static_cast<std::int32_t>(channel);
    task.mean[c] = static_cast<float>(preprocessing.mean[channel]);
    task.std[c] = static_cast<float>(preprocessing.std[channel]);
  }
  task.reflect = options.padding == PadMode::kReflect;
  task.blur = options.blur;
  task.noise = static_cast<float>(options.noise);
  return task;
}

/// Images in host memory.
at::Tensor augmented_by_host(const at::Tensor& images, const AugmentTask& task,
                             const AugmentNumbers& drawn) {
  at::Tensor result = at::empty_like(images);
  const float* input = images.const_data_ptr<float>();
  auto* output = result.mutable_data_ptr<float>();
  CpuAugment augment(task, drawn);
  at::parallel_for(0, augment.rows(), 64,
                   [&](std::int64_t begin, std::int64_t end) { augment.place_rows(begin, end); });
  const std::int64_t size = images.numel() / images.size(0);
  at::parallel_for(0, images.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> scratch = augment.make_scratch();
    for (std::int64_t image = begin; image < end; ++image) {
      augment.make_image(image, input + image * size, output + image * size, scratch.data());
    }
  });
  return result;
}

at::Tensor augmented_somewhere(const at::Tensor& images, const AugmentTask& task,
                               const AugmentNumbers& drawn) {
  if (images.size(0) == 0) return at::empty_like(images);
  return augmented_by_host(images.cpu(), task, drawn).to(images.device());
}

}  // namespace

AugmentView::AugmentView(const Options& options) : options_(options) {
  check_ranges(view_ranges(), "view augment", options);
}

void AugmentView::attach(at::Device device, const Preprocessing& preprocessing) {
  preprocessing_ = preprocessing;
  drawn_.attach(device);
}

void AugmentView::draw(std::uint64_t seed, std::int64_t number, int count) {
  AugmentNumbers* drawn = drawn_.begin(count);
  for (int which = 0; which < count; ++which) {
    Random random(seed, "augmented view",
                  {static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(which)});
    drawn[which] = numbers_of(draw_augment(random, options_.soft));
  }
}

at::Tensor AugmentView::look(const at::Tensor& images, int which) {
  const at::Tensor dense = checked_images(images);
  const AugmentTask task = task_for(dense, options_, preprocessing_);
  const AugmentNumbers* drawn = drawn_.host(which);
  if (dense.is_cuda() && dense.numel() > 0) {
    const at::Tensor result = cuda_augmented(dense, task, drawn, drawn_.device(which));
    if (result.defined()) return result;
  }
  return augmented_somewhere(dense, task, *drawn);
}

at::Tensor augmented(const at::Tensor& images, const AugmentDraw& draw,
                     const AugmentOptions& options, const Preprocessing& preprocessing) {
  const at::Tensor dense = checked_images(images);
  return augmented_somewhere(dense, task_for(dense, options, preprocessing), numbers_of(draw));
}

}  // namespace gala
