#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "gala/layer/layout.h"
#include "gala/layer/memory.h"
#include "gala/optim/adam_rule.h"
#include "gala/optim/sgd_rule.h"
#include "gala/optim/sweep.h"

namespace gala {

/// Work over the numbers `from` .. `to` - 1 that several threads share; borrowed, not kept.
class SharedWork {
 public:
  template <class Work, class = std::enable_if_t<!std::is_same_v<Work, SharedWork>>>
  SharedWork(const Work& work)  // NOLINT: made from a lambda, in passing
      : work_(&work), call_([](const void* given, std::int64_t from, std::int64_t to) {
          (*static_cast<const Work*>(given))(from, to);
        }) {}
  void operator()(std::int64_t from, std::int64_t to) const { call_(work_, from, to); }

 private:
  const void* work_;
  void (*call_)(const void*, std::int64_t, std::int64_t);
};

/// Where the numbers of a step live and who works on them: the memory of one device, the passes over
/// it, and the host's threads. This is all that a step knows of a machine. HostWorkspace is the host
/// alone; TorchWorkspace takes memory and threads from LibTorch.
class Workspace {
 public:
  virtual ~Workspace() = default;

  /// Zeros on the device.
  virtual Memory make(std::int64_t bytes) = 0;
  /// Zeros on the host that the device can read by itself.
  virtual Memory make_on_host(std::int64_t bytes) = 0;
  virtual void zero(const Memory& memory) = 0;
  /// Both on the device.
  virtual void copy(void* to, const void* from, std::int64_t bytes) = 0;
  /// To the host, after everything that was queued.
  virtual void fetch(void* host, const void* device, std::int64_t bytes) = 0;

  /// Has threads of the host do parts of 0 .. count - 1.
  virtual void share_out(std::int64_t count, SharedWork work) = 0;

  /// On a GPU its number and the stream (cudaStream_t) to queue work on.
  virtual int device() const { return 0; }
  virtual void* stream() const { return nullptr; }

  /// The passes over the arena: one function for each rule there is.
  virtual std::unique_ptr<Sweep<AdamRule>> make_sweep(const SweepContext<AdamRule>& context) = 0;
  virtual std::unique_ptr<Sweep<SgdRule>> make_sweep(const SweepContext<SgdRule>& context) = 0;

  /// By tensor: Σ over its entries of g² / (Var g along the first axis + floor); the variance is the
  /// unbiased one, and 0 where the axis has one place.
  virtual std::vector<double> signal_over_rows(const ArenaLayout& layout,
                                               GradientPointers gradients, double floor) = 0;
  /// By tensor: Σ over its entries of ḡ² / (Var g + floor), mean and variance over the buffers,
  /// of which there are at least two.
  virtual std::vector<double> signal_over_buffers(const ArenaLayout& layout,
                                                  std::span<const Memory> buffers,
                                                  double floor) = 0;
};

}  // namespace gala
