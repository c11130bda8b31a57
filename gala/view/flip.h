#pragma once
#include "gala/view/view.h"

namespace gala {

/// Every image mirrored left to right, x'(r, c) = x(r, W - 1 - c); nothing is drawn.
class FlipView : public View {
 public:
  using Options = NoOptions;
  explicit FlipView(const Options&) {}
  void draw(std::uint64_t, std::int64_t, int) override {}
  at::Tensor look(const at::Tensor& images, int which) override;
};

}  // namespace gala
