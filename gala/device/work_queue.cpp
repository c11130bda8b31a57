#include "gala/device/work_queue.h"

#include <ATen/ATen.h>

#include <array>
#include <chrono>

#include "gala/base/error.h"
#include "gala/device/cuda_queue.h"

namespace gala {
namespace {

/// Runs everything at once, on whatever LibTorch's current stream is.
class DirectQueue : public WorkQueue {
 public:
  std::unique_ptr<Scope> enter() override { return std::make_unique<Nothing>(); }
  bool captures() const override { return false; }
  std::unique_ptr<CapturedWork> capture(const std::function<void()>&, int) override {
    fail("this device captures no work");
  }
  void bring(std::span<const Brought> parts) override {
    for (const Brought& part : parts) part.host.copy_(part.device);
  }
  void wait() override {}
  void mark(int phase) override {
    marks_[static_cast<std::size_t>(phase)] = std::chrono::steady_clock::now();
  }
  void time_phases(bool) override {}
  bool times_phases() const override { return true; }
  double phase_time(int phase) const override {
    const auto i = static_cast<std::size_t>(phase);
    return std::chrono::duration<double, std::milli>(marks_[i] - marks_[i - 1]).count();
  }

 private:
  struct Nothing : Scope {
    void hand_over(const at::Tensor&) override {}
  };

  std::array<std::chrono::steady_clock::time_point, kMarks> marks_{};
};

}  // namespace

std::unique_ptr<WorkQueue> WorkQueue::make(at::Device device) {
  std::unique_ptr<WorkQueue> queue = make_cuda_queue(device);
  return queue ? std::move(queue) : std::make_unique<DirectQueue>();
}

}  // namespace gala
