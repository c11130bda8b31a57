#pragma once
#include <ATen/core/Tensor.h>

#include <span>
#include <string>
#include <vector>

#include "gala/layer/layout.h"
#include "gala/layer/memory.h"
#include "gala/tensor/state.h"

namespace gala {

/// A tensor and the name it has in weight files.
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

/// All parameters that may adapt, in one flat float32 buffer, in forward order. Each tensor is a
/// view into it, in its own strides, and a leaf of autograd. Moments and displacement are buffers of
/// the same layout (`make_buffer`), so a step is a few streaming passes over memory, and resetting
/// or rolling back is a single copy. Kernels write through `data()` only after backward.
class ParameterArena {
 public:
  /// Copies the values; all must be dense float32 on one device, with distinct names.
  explicit ParameterArena(std::span<const NamedTensor> parameters);

  const ArenaLayout& layout() const { return layout_; }
  std::span<const ArenaLayout::Entry> entries() const { return layout_.entries; }
  std::int64_t size() const { return values_.numel(); }

  /// The flat buffer itself. It never requires grad.
  const at::Tensor& values() const { return values_; }
  /// The autograd leaf over one tensor's part; give it to the network in place of its parameter.
  const at::Tensor& leaf(std::size_t index) const { return leaves_[index]; }
  /// One tensor's part of any buffer of this layout, in the tensor's sizes and strides.
  at::Tensor view(const at::Tensor& buffer, std::size_t index) const;

  /// A buffer of this layout on the same device, filled with zeros.
  at::Tensor make_buffer() const;
  /// Memory of that device as a buffer of this layout; the memory must outlive it.
  at::Tensor as_buffer(const Memory& memory) const;

  /// Writes a buffer of this layout into `state`, tensor by tensor, under `prefix` + name.
  void save(const at::Tensor& buffer, const std::string& prefix, State& state) const;
  /// Reads it back; throws Error when a tensor is missing or has another shape.
  void load(at::Tensor& buffer, const std::string& prefix, const State& state) const;

 private:
  ArenaLayout layout_;
  at::Tensor values_;
  std::vector<at::Tensor> leaves_;
};

/// The gradients of one backward pass, where autograd left them: one for each tensor of the arena, in
/// the leaf's strides. An undefined one stands for zeros.
struct Gradients {
  std::vector<at::Tensor> tensors;

  /// Where they lie; null for zeros.
  std::vector<const float*> pointers() const;

  /// Takes the gradients out of the leaves, which are left without any.
  static Gradients take(const ParameterArena& arena);
};

}  // namespace gala
