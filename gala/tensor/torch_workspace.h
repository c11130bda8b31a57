#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gala/optim/workspace.h"

namespace gala {

/// A workspace with LibTorch's memory, threads and current stream, on any of its devices. Where there
/// are no kernels for the device, the passes are LibTorch operations.
class TorchWorkspace : public Workspace {
 public:
  explicit TorchWorkspace(at::Device device) : device_(device) {}

  Memory make(std::int64_t bytes) override;
  Memory make_on_host(std::int64_t bytes) override;
  void zero(const Memory& memory) override;
  void copy(void* to, const void* from, std::int64_t bytes) override;
  void fetch(void* host, const void* device, std::int64_t bytes) override;
  void share_out(std::int64_t count, SharedWork work) override;
  int device() const override;
  void* stream() const override;
  std::unique_ptr<Sweep<AdamRule>> make_sweep(const SweepContext<AdamRule>& context) override;
  std::unique_ptr<Sweep<SgdRule>> make_sweep(const SweepContext<SgdRule>& context) override;
  std::vector<double> signal_over_rows(const ArenaLayout& layout, GradientPointers gradients,
                                       double floor) override;
  std::vector<double> signal_over_buffers(const ArenaLayout& layout,
                                          std::span<const Memory> buffers, double floor) override;

 private:
  at::Tensor bytes_at(const void* begin, std::int64_t bytes) const;
  at::Device device_;
};

/// The memory of a tensor, held as long as somebody uses it.
Memory hold(const at::Tensor& tensor);

/// The pointers of device memory as a float32 tensor; the memory must outlive it.
at::Tensor tensor_at(const float* begin, const ArenaLayout::Entry& entry, at::Device device);

}  // namespace gala
