#pragma once
#include <ATen/core/Tensor.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "gala/device/process_place.h"

namespace gala {

/// Several processes that compute one thing, seen from one of them. All of them make the same calls in the
/// same order; a call returns when every process has made it. Throws PeerLost
/// (gala/device/peer_sockets.h) where another process has ended or is silent for too long.
class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// Rank 0 writes and speaks for all.
  bool leads() const { return rank_ == 0; }

  /// Puts the sum over all processes into `values` (float, double or int64; contiguous), the same bits in
  /// each of them. On a GPU it is queued, or waits for it.
  virtual void sum(at::Tensor& values) = 0;
  /// What each process gave, [size, ...], in the order of ranks; all of the same shape and type.
  virtual at::Tensor gather(const at::Tensor& mine) = 0;
  /// What rank 0 gave, in every process.
  virtual std::string from_first(const std::string& bytes) = 0;
  /// Waits until all that is queued on the device is done, and notices meanwhile where another process has
  /// ended, for which work on a GPU may wait forever.
  virtual void wait_for(at::Device device) = 0;

  /// What each process gave, in the order of ranks.
  std::vector<std::string> gather(const std::string& mine);
  /// True where any process says so.
  bool any(bool mine);

 protected:
  ProcessGroup(int rank, int size) : rank_(rank), size_(size) {}

 private:
  int rank_, size_;
};

/// Meets the other processes at the place, which waits for them as long as `patience`. Tensors on GPUs are
/// summed by NCCL where this library was built with CUDA, LibTorch has NCCL, and no two processes share a
/// GPU; everything else goes over connections of our own between all processes, through host memory: sums
/// are then made in double, in the order of ranks, and do not depend on time. Throws ConfigError where the
/// processes do not find each other.
std::unique_ptr<ProcessGroup> open_process_group(const ProcessPlace& place, at::Device device,
                                                 std::chrono::milliseconds patience);

}  // namespace gala
