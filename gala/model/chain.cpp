#include "gala/model/chain.h"

#include <ATen/ATen.h>

#include "gala/base/error.h"
#include "gala/device/capture_gate.h"

namespace gala {

Output ChainModel::forward(const at::Tensor& images, bool update_statistics) {
  check_images(images);
  return run(0, images.contiguous(memory_format()), norm_pass(images, update_statistics));
}

Output ChainModel::forward_counted(const at::Tensor& images, const at::Tensor& counted) {
  check_images(images);
  return run(0, images.contiguous(memory_format()),
             norm_pass(images, /*update_statistics=*/false, counted));
}

Output ChainModel::forward_again(const Output& before, const at::Tensor& images, int first_stage) {
  if (before.stage_inputs.empty()) return forward(images, /*update_statistics=*/false);
  const int stage = std::min(first_stage, stages());
  return run(stage, before.stage_inputs[static_cast<std::size_t>(stage)],
             norm_pass(images, /*update_statistics=*/false));
}

Output ChainModel::run(int first_stage, at::Tensor maps, const NormPass& pass) {
  const Uncaptured uncaptured;
  Output output;
  {
    const PrecisionScope scope(precision(), device().type());
    for (int stage = first_stage; stage < stages(); ++stage) {
      if (keeps_activations()) output.stage_inputs.push_back(maps.detach());
      maps = run_stage(stage, maps, pass);
    }
  }
  if (keeps_activations()) output.stage_inputs.push_back(maps.detach());
  output.features =
      maps.mean(at::IntArrayRef{2, 3}, /*keepdim=*/false, head_.weight->value.scalar_type());
  output.logits = head_.forward(output.features);
  output.moved = moved_in(pass);
  return output;
}

}  // namespace gala
