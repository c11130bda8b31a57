// Looks at a batch, on the host: the same numbers as the program's, since it is the same code.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstring>

#include "gala/base/error.h"
#include "gala/base/random.h"
#include "gala/optim/host_workspace.h"
#include "gala/view/augment_draw.h"
#include "gala/view/augmix_draw.h"
#include "gala/view/cpu_augment.h"
#include "gala/view/patch_order.h"
#include "python/src/bind.h"

namespace nb = nanobind;

namespace gala::python {
namespace {

using Triple = std::array<double, 3>;

Triple triple_of(const std::vector<double>& values, const char* what) {
  if (values.size() != 3) fail("{} must be three numbers, not {}", what, values.size());
  return {values[0], values[1], values[2]};
}

/// Images [N, 3, H, W], contiguous, in float32.
struct Batch {
  std::uintptr_t input, output;
  std::int64_t images, height, width;
};

void augment(const Batch& batch, const AugmentNumbers& drawn, const AugmentTask& task,
             int threads) {
  CpuAugment work(task, drawn);
  work.place_rows(0, work.rows());
  const std::int64_t size = 3 * batch.height * batch.width;
  const auto* input = reinterpret_cast<const float*>(batch.input);
  auto* output = reinterpret_cast<float*>(batch.output);
  HostWorkspace(threads).share_out(batch.images, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> scratch = work.make_scratch();
    for (std::int64_t i = begin; i < end; ++i) {
      work.make_image(i, input + i * size, output + i * size, scratch.data());
    }
  });
}

/// What look `which` of step `number` draws.
AugmentNumbers draw_look(std::int64_t seed, std::int64_t number, std::int64_t which, bool soft) {
  Random random(static_cast<std::uint64_t>(seed), "augmented view",
                {static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(which)});
  return numbers_of(draw_augment(random, soft));
}

/// The same of `augmix`, as a row of numbers.
std::vector<double> augmix_numbers(std::int64_t seed, std::int64_t number, std::int64_t which,
                                   double severity) {
  Random random(static_cast<std::uint64_t>(seed), "augmix view",
                {static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(which)});
  const AugmixDraw drawn = draw_augmix(random, severity);
  std::vector<double> numbers(kAugmixNumbers);
  std::memcpy(numbers.data(), &drawn, sizeof(drawn));
  return numbers;
}

/// Which patch goes to each place, image by image.
std::vector<std::vector<int>> patch_orders(std::int64_t seed, std::int64_t number,
                                           std::int64_t which, std::int64_t images,
                                           std::int64_t grid) {
  if (grid < 2 || grid > kMostGrid) {
    fail<ConfigError>("view patches: grid must lie in [2, {}], not {}", kMostGrid, grid);
  }
  const std::uint64_t drawn =
      Random(static_cast<std::uint64_t>(seed), "shuffled patches",
             {static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(which)})
          .next();
  std::vector<std::vector<int>> orders;
  std::array<std::int16_t, kMostPatches> order{};
  const auto count = static_cast<std::int32_t>(grid * grid);
  for (std::int64_t image = 0; image < images; ++image) {
    order_patches(drawn, image, count, order.data());
    orders.emplace_back(order.begin(), order.begin() + count);
  }
  return orders;
}

}  // namespace

void bind_views(nb::module_& m) {
  m.def(
      "augment",
      [](std::uintptr_t input, std::uintptr_t output, std::int64_t images, std::int64_t height,
         std::int64_t width, std::int64_t seed, std::int64_t number, std::int64_t which, bool soft,
         bool reflect, bool blur, double noise, const std::vector<double>& mean,
         const std::vector<double>& std, int threads) {
        AugmentTask task{};
        task.images = static_cast<std::int32_t>(images);
        task.height = static_cast<std::int32_t>(height);
        task.width = static_cast<std::int32_t>(width);
        task.pixel_step = 1;
        task.channel_step = task.height * task.width;
        const Triple middle = triple_of(mean, "mean"), deviation = triple_of(std, "std");
        for (std::size_t c = 0; c < 3; ++c) {
          task.channel[c] = static_cast<std::int32_t>(c);
          task.mean[c] = static_cast<float>(middle[c]);
          task.std[c] = static_cast<float>(deviation[c]);
        }
        task.reflect = reflect;
        task.blur = blur;
        task.noise = static_cast<float>(noise);
        augment({input, output, images, height, width}, draw_look(seed, number, which, soft), task,
                threads);
      },
      nb::call_guard<nb::gil_scoped_release>());
  m.def("patch_orders", patch_orders);
  m.def("augmix_numbers", augmix_numbers);
  m.def("draw", [](std::int64_t seed, const std::string& name, std::int64_t number) {
    return Random(static_cast<std::uint64_t>(seed), name, {static_cast<std::uint64_t>(number)})
        .next();
  });
}

}  // namespace gala::python
