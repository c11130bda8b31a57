#include "gala/step/displacement.h"

namespace gala {

Displacement::Displacement(const float* values, std::int64_t size, Workspace& workspace,
                           DisplacementForm form, Anchor anchor, double keep)
    : values_(values), workspace_(&workspace), form_(form), keep_(static_cast<float>(keep)) {
  const std::int64_t bytes = size * static_cast<std::int64_t>(sizeof(float));
  buffer_ = workspace.make(bytes);
  if (anchor == Anchor::kPrevious) recent_ = workspace.make(bytes);
  reset();
}

void Displacement::open_window() {
  if (recent_) workspace_->copy(buffer_.data(), recent_.data(), buffer_.bytes());
  begin(recent_ ? recent_ : buffer_);
}

void Displacement::reset() {
  begin(buffer_);
  if (recent_) begin(recent_);
}

void Displacement::begin(const Memory& buffer) {
  if (form_ != DisplacementForm::kDifference) return workspace_->zero(buffer);
  workspace_->copy(buffer.data(), values_, buffer.bytes());
}

DisplacementView Displacement::view() const {
  const bool difference = form_ == DisplacementForm::kDifference;
  return {.shift = buffer_.data(),
          .recent = difference ? nullptr : recent_.data(),
          .difference = difference,
          .proposed = form_ == DisplacementForm::kProposed,
          .keep = keep_};
}

void Displacement::remember(Archive& archive) {
  archive.buffer("displacement/", buffer_);
  if (recent_) archive.buffer("displacement_recent/", recent_);
}

}  // namespace gala
