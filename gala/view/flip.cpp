#include "gala/view/flip.h"

#include <ATen/ATen.h>

#include "gala/view/batch.h"

namespace gala {

at::Tensor FlipView::look(const at::Tensor& images, int) {
  const at::Tensor dense = checked_images(images);
  return at::flip(dense, {3}).contiguous(dense.suggest_memory_format());
}

}  // namespace gala
