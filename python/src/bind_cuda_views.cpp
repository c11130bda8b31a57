// Looks at a batch on a GPU. What was drawn lies in host memory, and the queued work fetches it: so a
// captured look sees the last draw.
#include <nanobind/stl/vector.h>

#include <limits>

#include "gala/base/cuda_check.h"
#include "gala/base/error.h"
#include "gala/base/random.h"
#include "gala/view/augment_draw.h"
#include "gala/view/cuda_view_kernels.h"
#include "python/src/bind.h"
#include "python/src/cuda_workspace.h"

namespace nb = nanobind;

namespace gala::python {
namespace {

constexpr std::int64_t kMostLooks = 1024;

/// A record for each look, on both sides.
template <class Record>
class Drawn {
 public:
  explicit Drawn(int device)
      : device_(device),
        host_(pinned_memory(kMostLooks * static_cast<std::int64_t>(sizeof(Record)), device)),
        there_(cuda_memory(kMostLooks * static_cast<std::int64_t>(sizeof(Record)), device)) {}

  void set(std::int64_t which, const Record& record) {
    host_.data<Record>()[checked(which)] = record;
  }
  /// Queues the way to the device.
  const Record* fetched(std::int64_t which, cudaStream_t stream) {
    Record* place = there_.data<Record>() + checked(which);
    check_cuda(cudaMemcpyAsync(place, host_.data<Record>() + which, sizeof(Record),
                               cudaMemcpyHostToDevice, stream));
    return place;
  }
  int device() const { return device_; }

 private:
  static std::int64_t checked(std::int64_t which) {
    if (which < 0 || which >= kMostLooks) fail("there is no look {}", which);
    return which;
  }

  int device_;
  Memory host_, there_;
};

class CudaAugment {
 public:
  CudaAugment(int device, bool soft, bool reflect, bool blur, double noise,
              const std::vector<double>& mean, const std::vector<double>& std)
      : drawn_(device), soft_(soft) {
    if (mean.size() != 3 || std.size() != 3) fail("mean and std must be three numbers each");
    for (std::size_t c = 0; c < 3; ++c) {
      task_.channel[c] = static_cast<std::int32_t>(c);
      task_.mean[c] = static_cast<float>(mean[c]);
      task_.std[c] = static_cast<float>(std[c]);
    }
    task_.reflect = reflect;
    task_.blur = blur;
    task_.noise = static_cast<float>(noise);
  }

  void draw(std::int64_t seed, std::int64_t number, std::int64_t count) {
    for (std::int64_t which = 0; which < count; ++which) {
      Random random(static_cast<std::uint64_t>(seed), "augmented view",
                    {static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(which)});
      drawn_.set(which, numbers_of(draw_augment(random, soft_)));
    }
  }

  /// How many doubles `look` needs beside four floats a pixel.
  std::int64_t parts(std::int64_t images, std::int64_t height, std::int64_t width) const {
    return augment_parts(task_for(images, height, width, false));
  }

  void look(std::int64_t which, std::uintptr_t input, std::uintptr_t work, std::uintptr_t parts,
            std::uintptr_t output, std::int64_t images, std::int64_t height, std::int64_t width,
            bool channels_last, std::uintptr_t stream) {
    const CurrentDevice current(drawn_.device());
    const AugmentNumbers* drawn = drawn_.fetched(which, stream_at(stream));
    queue_augment(task_for(images, height, width, channels_last), drawn,
                  reinterpret_cast<const float*>(input), reinterpret_cast<float*>(work),
                  reinterpret_cast<double*>(parts), reinterpret_cast<float*>(output),
                  stream_at(stream));
  }

 private:
  AugmentTask task_for(std::int64_t images, std::int64_t height, std::int64_t width,
                       bool channels_last) const {
    if (3 * images * height * width > std::numeric_limits<std::int32_t>::max()) {
      fail("view augment: a batch of {} numbers is too large", 3 * images * height * width);
    }
    AugmentTask task = task_;
    task.images = static_cast<std::int32_t>(images);
    task.height = static_cast<std::int32_t>(height);
    task.width = static_cast<std::int32_t>(width);
    task.pixel_step = channels_last ? 3 : 1;
    task.channel_step = channels_last ? 1 : task.height * task.width;
    return task;
  }

  Drawn<AugmentNumbers> drawn_;
  AugmentTask task_{};
  bool soft_;
};

class CudaPatches {
 public:
  CudaPatches(int device, std::int64_t grid) : drawn_(device), grid_(grid) {}

  void draw(std::int64_t seed, std::int64_t number, std::int64_t count) {
    for (std::int64_t which = 0; which < count; ++which) {
      drawn_.set(which,
                 Random(static_cast<std::uint64_t>(seed), "shuffled patches",
                        {static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(which)})
                     .next());
    }
  }

  void look(std::int64_t which, std::uintptr_t input, std::uintptr_t output, std::int64_t images,
            std::int64_t height, std::int64_t width, bool channels_last, std::uintptr_t stream) {
    const CurrentDevice current(drawn_.device());
    const std::uint64_t* seed = drawn_.fetched(which, stream_at(stream));
    const auto size = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
    const PatchTask task{size(images), size(channels_last ? 1 : 3), size(height),
                         size(width),  size(channels_last ? 3 : 1), size(grid_)};
    queue_shuffle(task, seed, reinterpret_cast<const float*>(input),
                  reinterpret_cast<float*>(output), stream_at(stream));
  }

 private:
  Drawn<std::uint64_t> drawn_;
  std::int64_t grid_;
};

}  // namespace

void bind_cuda_views(nb::module_& m) {
  nb::class_<CudaAugment>(m, "Augment")
      .def(nb::init<int, bool, bool, bool, double, const std::vector<double>&,
                    const std::vector<double>&>())
      .def("draw", &CudaAugment::draw)
      .def("parts", &CudaAugment::parts)
      .def("look", &CudaAugment::look);
  nb::class_<CudaPatches>(m, "Patches")
      .def(nb::init<int, std::int64_t>())
      .def("draw", &CudaPatches::draw)
      .def("look", &CudaPatches::look);
}

}  // namespace gala::python
