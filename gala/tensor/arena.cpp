#include "gala/tensor/arena.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <set>

#include "gala/base/error.h"

namespace gala {
namespace {

/// Whether two tensors of one shape have their elements in the same order. Strides of dimensions of
/// size 1 do not matter.
bool lie_alike(const at::Tensor& a, const at::Tensor& b) {
  for (std::int64_t d = 0; d < a.dim(); ++d) {
    if (a.size(d) != 1 && a.stride(d) != b.stride(d)) return false;
  }
  return true;
}

}  // namespace

ParameterArena::ParameterArena(std::span<const NamedTensor> parameters) {
  if (parameters.empty()) fail("an arena needs at least one parameter");
  std::set<std::string_view> names;
  for (const auto& [name, tensor] : parameters) {
    if (!names.insert(name).second) fail("parameter {} is named twice", name);
    if (tensor.scalar_type() != at::kFloat) fail("parameter {} is not float32", name);
    if (tensor.device() != parameters[0].tensor.device())
      fail("parameter {} is on another device", name);
    const bool dense = tensor.is_non_overlapping_and_dense();
    const at::Tensor laid_out = dense ? tensor : tensor.contiguous();
    layout_.add(name, tensor.sizes().vec(), laid_out.strides().vec());
  }
  values_ = at::zeros({layout_.size}, parameters[0].tensor.options().requires_grad(false));
  const c10::NoGradGuard no_grad;
  for (std::size_t i = 0; i < entries().size(); ++i) {
    const at::Tensor part = view(values_, i);
    part.copy_(parameters[i].tensor);
    leaves_.push_back(part.detach().requires_grad_());
  }
}

at::Tensor ParameterArena::view(const at::Tensor& buffer, std::size_t index) const {
  const ArenaLayout::Entry& entry = layout_.entries[index];
  return buffer.as_strided(entry.sizes, entry.strides, buffer.storage_offset() + entry.range.begin);
}

at::Tensor ParameterArena::make_buffer() const {
  return at::zeros_like(values_);
}

at::Tensor ParameterArena::as_buffer(const Memory& memory) const {
  return at::from_blob(memory.data<void>(), values_.sizes(), values_.options());
}

void ParameterArena::save(const at::Tensor& buffer, const std::string& prefix, State& state) const {
  for (std::size_t i = 0; i < entries().size(); ++i) {
    state.tensors[prefix + entries()[i].name] =
        view(buffer, i).detach().to(at::kCPU).clone(at::MemoryFormat::Contiguous);
  }
}

void ParameterArena::load(at::Tensor& buffer, const std::string& prefix, const State& state) const {
  const c10::NoGradGuard no_grad;
  for (std::size_t i = 0; i < entries().size(); ++i) {
    const std::string name = prefix + entries()[i].name;
    const auto found = state.tensors.find(name);
    if (found == state.tensors.end()) fail("the state lacks {}", name);
    if (found->second.sizes() != at::IntArrayRef(entries()[i].sizes)) {
      fail("the state holds {} in another shape", name);
    }
    view(buffer, i).copy_(found->second);
  }
}

std::vector<const float*> Gradients::pointers() const {
  std::vector<const float*> result;
  result.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    result.push_back(tensor.defined() ? tensor.const_data_ptr<float>() : nullptr);
  }
  return result;
}

Gradients Gradients::take(const ParameterArena& arena) {
  Gradients gradients;
  const std::size_t count = arena.entries().size();
  gradients.tensors.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const at::Tensor& leaf = arena.leaf(i);
    at::Tensor gradient = std::move(leaf.mutable_grad());
    leaf.mutable_grad() = at::Tensor();
    if (gradient.defined() && !lie_alike(gradient, leaf)) {
      gradient =
          at::empty_strided(leaf.sizes(), leaf.strides(), gradient.options()).copy_(gradient);
    }
    gradients.tensors.push_back(std::move(gradient));
  }
  return gradients;
}

}  // namespace gala
