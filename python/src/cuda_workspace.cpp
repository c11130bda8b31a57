#include "python/src/cuda_workspace.h"

#include <nanobind/ndarray.h>

#include <cstring>

#include "gala/base/cuda_check.h"
#include "gala/base/error.h"
#include "gala/optim/cuda_sweep.h"
#include "python/src/make_workspace.h"

namespace gala::python {
namespace {

/// Captured graphs hold the addresses of these, so they are given back by the last holder only.
template <class Free>
Memory owned(void* begin, std::int64_t bytes, Free free) {
  return {std::shared_ptr<void>(begin, free), bytes};
}

template <class Rule>
std::unique_ptr<Sweep<Rule>> checked(std::unique_ptr<Sweep<Rule>> sweep) {
  if (!sweep) fail("there are more tensors than the passes on a GPU take");
  return sweep;
}

}  // namespace

CurrentDevice::CurrentDevice(int device) {
  check_cuda(cudaGetDevice(&before_));
  check_cuda(cudaSetDevice(device));
}

CurrentDevice::~CurrentDevice() {
  cudaSetDevice(before_);
}

Memory cuda_memory(std::int64_t bytes, int device) {
  const CurrentDevice current(device);
  void* begin = nullptr;
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  check_cuda(cudaMalloc(&begin, size));
  Memory memory = owned(begin, bytes, [](void* held) { cudaFree(held); });
  check_cuda(cudaMemset(begin, 0, size));
  check_cuda(cudaDeviceSynchronize());  // before another stream looks
  return memory;
}

Memory pinned_memory(std::int64_t bytes, int device) {
  const CurrentDevice current(device);
  void* begin = nullptr;
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  check_cuda(cudaHostAlloc(&begin, size, cudaHostAllocPortable | cudaHostAllocMapped));
  std::memset(begin, 0, size);
  return owned(begin, bytes, [](void* held) { cudaFreeHost(held); });
}

void CudaWorkspace::zero(const Memory& memory) {
  const CurrentDevice current(device_);
  check_cuda(
      cudaMemsetAsync(memory.data<void>(), 0, static_cast<std::size_t>(memory.bytes()), queue()));
}

void CudaWorkspace::copy(void* to, const void* from, std::int64_t bytes) {
  const CurrentDevice current(device_);
  check_cuda(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice,
                             queue()));
}

void CudaWorkspace::fetch(void* host, const void* device, std::int64_t bytes) {
  const CurrentDevice current(device_);
  check_cuda(cudaMemcpyAsync(host, device, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost,
                             queue()));
  check_cuda(cudaStreamSynchronize(queue()));
}

std::unique_ptr<Sweep<AdamRule>> CudaWorkspace::make_sweep(const SweepContext<AdamRule>& context) {
  return checked(make_cuda_sweep(context));
}

std::unique_ptr<Sweep<SgdRule>> CudaWorkspace::make_sweep(const SweepContext<SgdRule>& context) {
  return checked(make_cuda_sweep(context));
}

std::vector<double> CudaWorkspace::signal_over_rows(const ArenaLayout& layout,
                                                    GradientPointers gradients, double floor) {
  std::vector<std::vector<float>> copies(gradients.size());
  std::vector<const float*> pointers(gradients.size(), nullptr);
  for (std::size_t t = 0; t < gradients.size(); ++t) {
    if (!gradients[t]) continue;
    const std::int64_t count = layout.entries[t].range.size;
    copies[t].resize(static_cast<std::size_t>(count));
    fetch(copies[t].data(), gradients[t], count * static_cast<std::int64_t>(sizeof(float)));
    pointers[t] = copies[t].data();
  }
  return HostWorkspace::signal_over_rows(layout, pointers, floor);
}

std::vector<double> CudaWorkspace::signal_over_buffers(const ArenaLayout& layout,
                                                       std::span<const Memory> buffers,
                                                       double floor) {
  std::vector<Memory> copies;
  for (const Memory& buffer : buffers) {
    copies.push_back(HostWorkspace::make(buffer.bytes()));
    fetch(copies.back().data<void>(), buffer.data<void>(), buffer.bytes());
  }
  return HostWorkspace::signal_over_buffers(layout, copies, floor);
}

std::unique_ptr<Workspace> make_workspace(int threads, int device) {
  return std::make_unique<CudaWorkspace>(threads, device);
}

void set_stream(Workspace& workspace, void* stream) {
  static_cast<CudaWorkspace&>(workspace).use(stream);
}

int memory_kind() {
  return nanobind::device::cuda::value;
}

}  // namespace gala::python
