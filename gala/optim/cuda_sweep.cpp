#include "gala/optim/cuda_sweep.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cstring>

#include "gala/device/cuda_check.h"
#include "gala/optim/cuda_kernels.h"

namespace gala {
namespace {

/// A copy of host memory on the device, as bytes.
template <class T>
at::Tensor upload(const std::vector<T>& data, at::Device device) {
  const auto bytes = static_cast<std::int64_t>(data.size() * sizeof(T));
  const at::Tensor host = at::empty({bytes}, at::TensorOptions(at::kByte));
  std::memcpy(host.mutable_data_ptr(), data.data(), static_cast<std::size_t>(bytes));
  return host.to(device);
}

/// The same into memory that is there. Up to 64 KB CUDA takes the data in before it returns and does
/// not wait for the device; that is far more than a thousand layers need.
template <class T>
void upload_into(const at::Tensor& target, std::span<const T> data, cudaStream_t stream) {
  check_cuda(cudaMemcpyAsync(target.mutable_data_ptr(), data.data(), data.size_bytes(),
                             cudaMemcpyHostToDevice, stream));
}

template <class T>
T* pointer(const at::Tensor& bytes) {
  return static_cast<T*>(bytes.mutable_data_ptr());
}

template <class Rule>
class CudaSweep : public Sweep<Rule> {
 public:
  explicit CudaSweep(const SweepContext<Rule>& context)
      : context_(context), device_(context.arena.values().device()) {
    const std::vector<SweepChunk> chunks = make_chunks(context.arena, context.layers, kCudaChunk);
    layer_begin_.assign(context.layers.size() + 1, static_cast<std::int32_t>(chunks.size()));
    for (std::size_t i = chunks.size(); i-- > 0;) {
      layer_begin_[static_cast<std::size_t>(chunks[i].layer)] = static_cast<std::int32_t>(i);
    }
    pointers_.resize(context.arena.entries().size());
    const auto bytes = at::TensorOptions(at::kByte).device(device_);
    const auto layers = static_cast<std::int64_t>(context.layers.size());
    chunks_ = upload(chunks, device_);
    device_begin_ = upload(layer_begin_, device_);
    rules_ = at::zeros({layers * static_cast<std::int64_t>(sizeof(Rule))}, bytes);
    fresh_rules_ = at::zeros(rules_.sizes(), at::TensorOptions(at::kByte).pinned_memory(true));
    weights_ = at::zeros({layers * static_cast<std::int64_t>(sizeof(float))}, bytes);
    broken_ = at::zeros({1}, bytes.dtype(at::kInt));
    parts_ = at::zeros({static_cast<std::int64_t>(chunks.size()) * kSumColumns},
                       bytes.dtype(at::kDouble));
  }

  void set_rules(std::span<const Rule> rules) override {
    std::memcpy(fresh_rules_.mutable_data_ptr(), rules.data(), rules.size_bytes());
    if (measures_) return;  // a kernel of the measuring pass fetches them
    const c10::cuda::CUDAGuard guard(device_);
    upload_into(rules_, rules, stream());
  }

  void measure(const Gradients& gradients, const at::Tensor& loss, const Displacement& displacement,
               bool commit, const at::Tensor& table) override {
    const c10::cuda::CUDAGuard guard(device_);
    measures_ = true;
    CudaPass<Rule> pass = make_pass(gradients, displacement);
    pass.view.commit = commit;
    queue_measure(pass, pointers_.data(), pointers_.size(), loss.const_data_ptr<float>(),
                  table.mutable_data_ptr<double>(), stream());
  }

  void apply(const Gradients& gradients, const Displacement& displacement, bool advance,
             std::span<const double> weights) override {
    std::size_t first = 0, last = weights.size();
    while (first < last && weights[first] == 0) ++first;
    while (last > first && weights[last - 1] == 0) --last;
    if (first == last) return;
    const c10::cuda::CUDAGuard guard(device_);
    CudaPass<Rule> pass = make_pass(gradients, displacement);
    pass.view.commit = advance;
    pass.first_chunk = layer_begin_[first];
    pass.last_chunk = layer_begin_[last];
    pass.weight = static_cast<float>(weights[first]);
    if (std::any_of(weights.begin() + first, weights.begin() + last,
                    [&](double weight) { return weight != weights[first]; })) {
      const std::vector<float> rounded(weights.begin(), weights.end());
      upload_into<float>(weights_, rounded, stream());
      pass.weights = pointer<const float>(weights_);
    }
    queue_apply(pass, pointers_.data(), pointers_.size(), stream());
  }

 private:
  cudaStream_t stream() const { return c10::cuda::getCurrentCUDAStream(device_.index()).stream(); }

  CudaPass<Rule> make_pass(const Gradients& gradients, const Displacement& displacement) {
    for (std::size_t t = 0; t < pointers_.size(); ++t) {
      pointers_[t] = data_or_null(gradients.tensors[t]);
    }
    CudaPass<Rule> pass{};
    pass.view = make_view(context_, displacement);
    pass.view.rules = pointer<const Rule>(rules_);
    pass.rules = pointer<Rule>(rules_);
    pass.fresh_rules = pointer<const Rule>(fresh_rules_);
    pass.chunks = pointer<const SweepChunk>(chunks_);
    pass.layer_begin = pointer<const std::int32_t>(device_begin_);
    pass.layer_count = static_cast<std::int32_t>(context_.layers.size());
    pass.chunk_count = layer_begin_.back();
    pass.parts = parts_.mutable_data_ptr<double>();
    pass.broken = broken_.mutable_data_ptr<std::int32_t>();
    return pass;
  }

  SweepContext<Rule> context_;
  at::Device device_;
  std::vector<std::int32_t> layer_begin_;
  std::vector<const float*> pointers_;
  at::Tensor chunks_, device_begin_, rules_, weights_, broken_, parts_;
  at::Tensor fresh_rules_;  ///< pinned
  bool measures_ = false;   ///< whether steps are measured; in training they are only applied
};

template <class Rule>
std::unique_ptr<Sweep<Rule>> make(const SweepContext<Rule>& context) {
  if (!context.arena.values().is_cuda()) return nullptr;
  if (context.arena.entries().size() > kMostCudaTensors) return nullptr;
  return std::make_unique<CudaSweep<Rule>>(context);
}

}  // namespace

std::unique_ptr<Sweep<AdamRule>> make_cuda_sweep(const SweepContext<AdamRule>& context) {
  return make(context);
}

std::unique_ptr<Sweep<SgdRule>> make_cuda_sweep(const SweepContext<SgdRule>& context) {
  return make(context);
}

}  // namespace gala
