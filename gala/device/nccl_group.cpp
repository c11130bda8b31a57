#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/cuda/nccl.h>
#include <unistd.h>

#include <cstring>
#include <set>
#include <thread>

#include "gala/device/host_group.h"

namespace gala {
namespace {

namespace nccl = torch::cuda::nccl;

/// Host and bus address of a GPU: the same in two processes where they share it.
std::string place_of(at::Device device) {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  char bus[64] = {};
  if (cudaDeviceGetPCIBusId(bus, sizeof bus, device.index()) != cudaSuccess) return host;
  return fmt::format("{} {}", host, bus);
}

/// Sums on GPUs by NCCL, through LibTorch's own calls of it; all else by the host's connections.
class NcclGroup : public ProcessGroup {
 public:
  NcclGroup(std::unique_ptr<HostGroup> host, at::Device device)
      : ProcessGroup(host->rank(), host->size()), host_(std::move(host)), device_(device) {
    nccl::ncclUniqueId id{};
    if (leads()) nccl::get_unique_id(id);
    const std::string bytes = host_->from_first({id.internal, sizeof id.internal});
    std::memcpy(id.internal, bytes.data(), sizeof id.internal);
    const c10::cuda::CUDAGuard guard(device_);
    communicator_ = nccl::comm_init_rank(size(), id, rank());
  }
  // The communicator ends with the process: to end it here would wait for processes that are gone.
  ~NcclGroup() override = default;

  void sum(at::Tensor& values) override {
    if (values.is_cpu()) return host_->sum(values);
    const c10::NoGradGuard no_grad;
    std::vector<at::Tensor> tensors = {values};
    nccl::all_reduce(tensors, tensors, static_cast<int>(nccl::ncclRedOp::Sum), {}, {communicator_});
  }

  at::Tensor gather(const at::Tensor& mine) override {
    if (mine.is_cpu()) return host_->gather(mine);
    const c10::NoGradGuard no_grad;
    std::vector<std::int64_t> shape = {size()};
    shape.insert(shape.end(), mine.sizes().begin(), mine.sizes().end());
    at::Tensor all = at::zeros(shape, mine.options());
    all.select(0, rank()).copy_(mine);
    sum(all);
    return all;
  }

  std::string from_first(const std::string& bytes) override { return host_->from_first(bytes); }

  void wait_for(at::Device device) override {
    if (!device.is_cuda()) return;
    const cudaStream_t stream = c10::cuda::getCurrentCUDAStream(device.index());
    cudaError_t state = cudaSuccess;
    while ((state = cudaStreamQuery(stream)) == cudaErrorNotReady) {
      host_->check();
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    C10_CUDA_CHECK(state);
  }

  using ProcessGroup::gather;

 private:
  std::unique_ptr<HostGroup> host_;
  at::Device device_;
  nccl::ncclComm_t communicator_ = nullptr;
};

}  // namespace

std::unique_ptr<ProcessGroup> with_nccl(std::unique_ptr<HostGroup> host, at::Device device) {
  const bool able = device.is_cuda() && nccl::version() > 0;
  const std::vector<std::string> places = host->gather(able ? place_of(device) : std::string());
  // NCCL takes no GPU twice.
  const std::set<std::string> different(places.begin(), places.end());
  if (different.contains("") || different.size() < places.size()) return host;
  return std::make_unique<NcclGroup>(std::move(host), device);
}

}  // namespace gala
