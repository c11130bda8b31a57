#include "gala/method/window_store.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "gala/base/error.h"
#include "gala/method/ranges.h"

namespace gala {

WindowStore::WindowStore(const Options& options) : options_(options) {
  check_ranges(method_ranges(), "store window", options);
}

void WindowStore::attach(at::Device device, std::int64_t) {
  device_ = device;
}

void WindowStore::reset() {
  images_.reset();
  count_ = next_ = 0;
}

Store::Shown WindowStore::show(const at::Tensor& images) {
  const c10::NoGradGuard no_grad;
  const std::int64_t batch = images.size(0), length = options_.length;
  if (batch > length) {
    fail<ConfigError>(
        "store window: a batch of {} images does not fit into a window of {} (length={} or more, "
        "smaller "
        "batches, or no store: such batches have statistics of their own)",
        batch, length, batch);
  }
  if (!images_.defined() || images_.sizes().slice(1) != images.sizes().slice(1)) {
    std::vector<std::int64_t> sizes{length};
    for (const std::int64_t size : images.sizes().slice(1)) sizes.push_back(size);
    images_ = at::zeros(sizes, at::TensorOptions(at::kFloat).device(device_));
    count_ = next_ = 0;
  }
  // A broken image had its turn. If it stayed it would spoil the statistics, and with them the answers, of
  // all that come while the window holds it: in its place stands one that is new.
  const at::Tensor sound = at::isfinite(images_).flatten(1).all(1).view({-1, 1, 1, 1});
  images_.copy_(at::where(sound, images_, images.narrow(0, 0, 1).to(device_)));
  // The places of a ring: at most two pieces.
  const std::int64_t first = std::min(batch, length - next_);
  images_.narrow(0, next_, first).copy_(images.narrow(0, 0, first));
  images_.narrow(0, 0, batch - first).copy_(images.narrow(0, first, batch - first));
  const at::Tensor rows =
      at::arange(next_, next_ + batch, at::TensorOptions(at::kLong)).remainder(length).to(device_);
  const bool all_new = next_ + batch >= length;
  count_ = std::min(count_ + batch, length);
  next_ = (next_ + batch) % length;
  return {.images = images_.narrow(0, 0, count_), .rows = rows, .adapt = all_new};
}

void WindowStore::remember(StateArchive& archive) {
  std::vector<std::int64_t> shape;
  if (images_.defined()) shape = images_.sizes().vec();
  archive.value("window_shape", shape);
  archive.value("window_count", count_);
  archive.value("window_next", next_);
  if (archive.loads()) {
    images_.reset();
    const bool fits = shape.empty() || (shape.size() == 4 && shape[0] == options_.length);
    if (!fits || count_ < 0 || count_ > options_.length || next_ < 0 || next_ >= options_.length) {
      fail("the window that the state keeps is of another length");
    }
    if (!shape.empty()) {
      images_ = at::zeros(shape, at::TensorOptions(at::kFloat).device(device_));
    }
  }
  if (!shape.empty()) archive.tensor("window_images", images_);
}

}  // namespace gala
