#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

#include "gala/optim/host_workspace.h"

namespace gala::python {

/// A stream of PyTorch's, which tells it as a number.
inline cudaStream_t stream_at(std::uintptr_t address) {
  return reinterpret_cast<cudaStream_t>(address);
}

/// Makes a GPU the current one of this thread, and the one before when it ends.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device);
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = 0;
};

/// Memory of a GPU, zeroed.
Memory cuda_memory(std::int64_t bytes, int device);
/// Memory of the host, zeroed, that a GPU can read by itself.
Memory pinned_memory(std::int64_t bytes, int device);

/// A GPU's memory, and work that is queued on the stream PyTorch uses. Sums that a rare selector asks of
/// gradients are made by the host, from a copy.
class CudaWorkspace : public HostWorkspace {
 public:
  CudaWorkspace(int threads, int device) : HostWorkspace(threads), device_(device) {}

  Memory make(std::int64_t bytes) override { return cuda_memory(bytes, device_); }
  Memory make_on_host(std::int64_t bytes) override { return pinned_memory(bytes, device_); }
  void zero(const Memory& memory) override;
  void copy(void* to, const void* from, std::int64_t bytes) override;
  void fetch(void* host, const void* device, std::int64_t bytes) override;
  int device() const override { return device_; }
  void* stream() const override { return stream_; }
  void use(void* stream) { stream_ = stream; }
  std::unique_ptr<Sweep<AdamRule>> make_sweep(const SweepContext<AdamRule>& context) override;
  std::unique_ptr<Sweep<SgdRule>> make_sweep(const SweepContext<SgdRule>& context) override;
  std::vector<double> signal_over_rows(const ArenaLayout& layout, GradientPointers gradients,
                                       double floor) override;
  std::vector<double> signal_over_buffers(const ArenaLayout& layout,
                                          std::span<const Memory> buffers, double floor) override;

 private:
  cudaStream_t queue() const { return static_cast<cudaStream_t>(stream_); }

  int device_;
  void* stream_ = nullptr;
};

}  // namespace gala::python
