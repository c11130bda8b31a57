#include "gala/tensor/displacement.h"

#include <ATen/ATen.h>

namespace gala {

Displacement::Displacement(const ParameterArena& arena, DisplacementForm form, Anchor anchor)
    : form_(form), buffer_(arena.make_buffer()) {
  if (anchor == Anchor::kPrevious) recent_ = arena.make_buffer();
  reset(arena);
}

void Displacement::open_window(const ParameterArena& arena) {
  if (recent_.defined()) buffer_.copy_(recent_);
  at::Tensor& newest = recent_.defined() ? recent_ : buffer_;
  form_ == DisplacementForm::kSum ? newest.zero_() : newest.copy_(arena.values());
}

void Displacement::reset(const ParameterArena& arena) {
  for (at::Tensor* buffer : {&buffer_, &recent_}) {
    if (!buffer->defined()) continue;
    form_ == DisplacementForm::kSum ? buffer->zero_() : buffer->copy_(arena.values());
  }
}

void Displacement::add(const ParameterArena& arena, std::size_t tensor,
                       const at::Tensor& delta) const {
  if (form_ == DisplacementForm::kDifference) return;
  arena.view(buffer_, tensor).add_(delta);
  if (recent_.defined()) arena.view(recent_, tensor).add_(delta);
}

at::Tensor Displacement::shift(const ParameterArena& arena, std::size_t tensor) const {
  const at::Tensor part = arena.view(buffer_, tensor);
  return form_ == DisplacementForm::kSum ? part : arena.view(arena.values(), tensor) - part;
}

void Displacement::save(const ParameterArena& arena, State& state) const {
  arena.save(buffer_, "displacement/", state);
  if (recent_.defined()) arena.save(recent_, "displacement_recent/", state);
}

void Displacement::load(const ParameterArena& arena, const State& state) {
  arena.load(buffer_, "displacement/", state);
  if (recent_.defined()) arena.load(recent_, "displacement_recent/", state);
}

}  // namespace gala
