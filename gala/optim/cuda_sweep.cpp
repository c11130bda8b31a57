#include "gala/optim/cuda_sweep.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "gala/base/cuda_check.h"
#include "gala/optim/cuda_kernels.h"
#include "gala/optim/workspace.h"

namespace gala {
namespace {

/// Makes a GPU the current one of this thread, and the one before when it ends.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) : device_(device) {
    check_cuda(cudaGetDevice(&before_));
    if (before_ != device_) check_cuda(cudaSetDevice(device_));
  }
  ~CurrentDevice() {
    if (before_ != device_) cudaSetDevice(before_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int device_, before_ = 0;
};

template <class Rule>
class CudaSweep : public Sweep<Rule> {
 public:
  explicit CudaSweep(const SweepContext<Rule>& context)
      : context_(context), pointers_(context.layout.entries.size()) {
    const CurrentDevice current(workspace().device());
    const std::vector<SweepChunk> chunks = make_chunks(context.layout, context.layers, kCudaChunk);
    const auto layers = static_cast<std::int64_t>(context.layers.size());
    layer_begin_.assign(context.layers.size() + 1, static_cast<std::int32_t>(chunks.size()));
    for (std::size_t i = chunks.size(); i-- > 0;) {
      layer_begin_[static_cast<std::size_t>(chunks[i].layer)] = static_cast<std::int32_t>(i);
    }
    chunks_ = uploaded(chunks);
    device_begin_ = uploaded(layer_begin_);
    rules_ = make<Rule>(layers);
    fresh_rules_ = workspace().make_on_host(layers * static_cast<std::int64_t>(sizeof(Rule)));
    weights_ = make<float>(layers);
    broken_ = make<std::int32_t>(1);
    parts_ = make<double>(std::ssize(chunks) * kSumColumns);
  }

  void set_rules(std::span<const Rule> rules, bool measures) override {
    std::memcpy(fresh_rules_.template data<void>(), rules.data(), rules.size_bytes());
    if (measures) return;  // a kernel of that pass fetches them
    const CurrentDevice current(workspace().device());
    upload_into(rules_, rules);
  }

  void measure(GradientPointers gradients, const float* loss, const DisplacementView& displacement,
               bool commit, double* table) override {
    const CurrentDevice current(workspace().device());
    CudaPass<Rule> pass = make_pass(gradients, displacement);
    pass.view.commit = commit;
    queue_measure(pass, pointers_.data(), pointers_.size(), loss, table, stream());
  }

  void apply(GradientPointers gradients, const DisplacementView& displacement, bool advance,
             std::span<const double> weights) override {
    std::size_t first = 0, last = weights.size();
    const auto stays = [&](double weight) { return weight == 0 && !displacement.proposed; };
    while (first < last && stays(weights[first])) ++first;
    while (last > first && stays(weights[last - 1])) --last;
    if (first == last) return;
    const CurrentDevice current(workspace().device());
    CudaPass<Rule> pass = make_pass(gradients, displacement);
    pass.view.commit = advance;
    pass.first_chunk = layer_begin_[first];
    pass.last_chunk = layer_begin_[last];
    pass.weight = static_cast<float>(weights[first]);
    if (std::any_of(weights.begin() + first, weights.begin() + last,
                    [&](double weight) { return weight != weights[first]; })) {
      const std::vector<float> rounded(weights.begin(), weights.end());
      upload_into<float>(weights_, rounded);
      pass.weights = weights_.template data<const float>();
    }
    queue_apply(pass, pointers_.data(), pointers_.size(), stream());
  }

 private:
  Workspace& workspace() const { return context_.workspace; }
  cudaStream_t stream() const { return static_cast<cudaStream_t>(workspace().stream()); }

  template <class T>
  Memory make(std::int64_t count) const {
    return workspace().make(count * static_cast<std::int64_t>(sizeof(T)));
  }

  /// Up to 64 KB CUDA takes the data in before it returns and does not wait for the device; that is
  /// far more than a thousand layers need.
  template <class T>
  void upload_into(const Memory& target, std::span<const T> data) const {
    check_cuda(cudaMemcpyAsync(target.template data<void>(), data.data(), data.size_bytes(),
                               cudaMemcpyHostToDevice, stream()));
  }

  template <class T>
  Memory uploaded(const std::vector<T>& data) const {
    const Memory memory = make<T>(std::ssize(data));
    upload_into<T>(memory, data);
    check_cuda(cudaStreamSynchronize(stream()));
    return memory;
  }

  CudaPass<Rule> make_pass(GradientPointers gradients, const DisplacementView& displacement) {
    std::copy(gradients.begin(), gradients.end(), pointers_.begin());
    CudaPass<Rule> pass{};
    pass.view = make_view(context_, displacement);
    pass.view.rules = rules_.template data<const Rule>();
    pass.rules = rules_.template data<Rule>();
    pass.fresh_rules = fresh_rules_.template data<const Rule>();
    pass.chunks = chunks_.template data<const SweepChunk>();
    pass.layer_begin = device_begin_.template data<const std::int32_t>();
    pass.layer_count = static_cast<std::int32_t>(context_.layers.size());
    pass.chunk_count = layer_begin_.back();
    pass.parts = parts_.template data<double>();
    pass.broken = broken_.template data<std::int32_t>();
    return pass;
  }

  SweepContext<Rule> context_;
  std::vector<std::int32_t> layer_begin_;
  std::vector<const float*> pointers_;
  Memory chunks_, device_begin_, rules_, weights_, broken_, parts_;
  Memory fresh_rules_;  ///< on the host
};

template <class Rule>
std::unique_ptr<Sweep<Rule>> make_sweep(const SweepContext<Rule>& context) {
  if (context.layout.entries.size() > kMostCudaTensors) return nullptr;
  return std::make_unique<CudaSweep<Rule>>(context);
}

}  // namespace

std::unique_ptr<Sweep<AdamRule>> make_cuda_sweep(const SweepContext<AdamRule>& context) {
  return make_sweep(context);
}

std::unique_ptr<Sweep<SgdRule>> make_cuda_sweep(const SweepContext<SgdRule>& context) {
  return make_sweep(context);
}

}  // namespace gala
