#pragma once
#include <ATen/core/Tensor.h>

#include <string>

#include "gala/layer/archive.h"
#include "gala/tensor/arena.h"
#include "gala/tensor/state.h"

namespace gala {

/// A State as the parts of a step see it; buffers lie as those of an arena do.
class StateArchive : public Archive {
 public:
  /// Saves into `state`.
  StateArchive(const ParameterArena& arena, State& state) : arena_(arena), saved_(&state) {}
  /// Loads from it.
  StateArchive(const ParameterArena& arena, const State& state) : arena_(arena), loaded_(&state) {}

  bool loads() const override { return loaded_ != nullptr; }
  void buffer(const std::string& prefix, const Memory& memory) override;
  Memory make_buffer() override;
  /// A tensor of any shape, which loading does not change.
  void tensor(const std::string& name, at::Tensor& tensor);
  /// Zeros in the arena's layout, for a part that is given more than it holds.
  at::Tensor make_tensor() const { return arena_.make_buffer(); }
  /// Device and type of the parameters.
  at::TensorOptions options() const { return arena_.values().options(); }

 protected:
  void exchange(const std::string& name, nlohmann::json& value) override;

 private:
  const ParameterArena& arena_;
  State* saved_ = nullptr;
  const State* loaded_ = nullptr;
};

}  // namespace gala
