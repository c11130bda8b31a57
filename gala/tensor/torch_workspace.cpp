#include "gala/tensor/torch_workspace.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include "gala/device/work_queue.h"
#include "gala/optim/cpu_sweep.h"
#include "gala/optim/cuda_sweep.h"
#include "gala/tensor/plain_sweep.h"

namespace gala {
namespace {

template <class Rule>
std::unique_ptr<Sweep<Rule>> sweep_on(at::Device device, const SweepContext<Rule>& context) {
  if (device.is_cpu()) return std::make_unique<CpuSweep<Rule>>(context);
  std::unique_ptr<Sweep<Rule>> sweep;
  if (device.is_cuda()) sweep = make_cuda_sweep(context);
  if (!sweep) sweep = std::make_unique<PlainSweep<Rule>>(context, device);
  return sweep;
}

/// Scalars on a device as numbers here, with one wait.
std::vector<double> brought(const std::vector<at::Tensor>& scalars) {
  const at::Tensor table = at::stack(scalars).to(at::kCPU, at::kDouble).contiguous();
  const double* numbers = table.const_data_ptr<double>();
  return {numbers, numbers + scalars.size()};
}

at::Tensor unbiased_variance(const at::Tensor& values, bool keep_axis) {
  return values.var(/*dim=*/at::IntArrayRef{0}, /*unbiased=*/true, keep_axis);
}

}  // namespace

Memory hold(const at::Tensor& tensor) {
  const auto held = std::make_shared<at::Tensor>(tensor);
  return {std::shared_ptr<void>(held, tensor.mutable_data_ptr()),
          static_cast<std::int64_t>(tensor.nbytes())};
}

at::Tensor tensor_at(const float* begin, const ArenaLayout::Entry& entry, at::Device device) {
  // from_blob knows no const memory.
  return at::from_blob(const_cast<float*>(begin), entry.sizes, entry.strides,
                       at::TensorOptions(at::kFloat).device(device));
}

at::Tensor TorchWorkspace::bytes_at(const void* begin, std::int64_t bytes) const {
  return at::from_blob(const_cast<void*>(begin), {bytes},
                       at::TensorOptions(at::kByte).device(device_));
}

Memory TorchWorkspace::make(std::int64_t bytes) {
  return hold(at::zeros({bytes}, at::TensorOptions(at::kByte).device(device_)));
}

Memory TorchWorkspace::make_on_host(std::int64_t bytes) {
  return hold(at::zeros({bytes}, at::TensorOptions(at::kByte).pinned_memory(!device_.is_cpu())));
}

void TorchWorkspace::zero(const Memory& memory) {
  bytes_at(memory.data<void>(), memory.bytes()).zero_();
}

void TorchWorkspace::copy(void* to, const void* from, std::int64_t bytes) {
  bytes_at(to, bytes).copy_(bytes_at(from, bytes), /*non_blocking=*/true);
}

void TorchWorkspace::fetch(void* host, const void* device, std::int64_t bytes) {
  at::from_blob(host, {bytes}, at::TensorOptions(at::kByte)).copy_(bytes_at(device, bytes));
}

void TorchWorkspace::share_out(std::int64_t count, SharedWork work) {
  at::parallel_for(0, count, 1, work);
}

int TorchWorkspace::device() const {
  return device_.has_index() ? device_.index() : 0;
}

void* TorchWorkspace::stream() const {
  return current_stream(device_);
}

std::unique_ptr<Sweep<AdamRule>> TorchWorkspace::make_sweep(const SweepContext<AdamRule>& context) {
  return sweep_on(device_, context);
}

std::unique_ptr<Sweep<SgdRule>> TorchWorkspace::make_sweep(const SweepContext<SgdRule>& context) {
  return sweep_on(device_, context);
}

std::vector<double> TorchWorkspace::signal_over_rows(const ArenaLayout& layout,
                                                     GradientPointers gradients, double floor) {
  const c10::NoGradGuard no_grad;
  const at::Tensor zero = at::zeros({}, at::TensorOptions(at::kFloat).device(device_));
  std::vector<at::Tensor> sums;
  for (std::size_t t = 0; t < layout.entries.size(); ++t) {
    if (!gradients[t]) {
      sums.push_back(zero);
      continue;
    }
    const at::Tensor gradient = tensor_at(gradients[t], layout.entries[t], device_);
    const at::Tensor rows = gradient.dim() == 0 ? gradient.reshape({1}) : gradient;
    const at::Tensor variance =
        rows.size(0) > 1 ? unbiased_variance(rows, /*keep_axis=*/true) : at::zeros_like(rows);
    sums.push_back((rows * rows / (variance + floor)).sum());
  }
  return brought(sums);
}

std::vector<double> TorchWorkspace::signal_over_buffers(const ArenaLayout& layout,
                                                        std::span<const Memory> buffers,
                                                        double floor) {
  const c10::NoGradGuard no_grad;
  std::vector<at::Tensor> sums;
  for (const ArenaLayout::Entry& entry : layout.entries) {
    std::vector<at::Tensor> seen;
    for (const Memory& buffer : buffers) {
      seen.push_back(tensor_at(buffer.data() + entry.range.begin, entry, device_));
    }
    const at::Tensor all = at::stack(seen), mean = all.mean(0);
    sums.push_back((mean * mean / (unbiased_variance(all, /*keep_axis=*/false) + floor)).sum());
  }
  return brought(sums);
}

}  // namespace gala
