#include "cli/adapted_weights.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "gala/base/error.h"
#include "gala/base/random.h"
#include "gala/model/weights.h"

namespace gala {
namespace {

/// Weights can be finite and beyond use all the same: products of 1e36 are not. Noise brings it out.
bool answers_noise(Model& model) {
  const c10::NoGradGuard no_grad;
  const std::int64_t side = model.preprocessing().size;
  at::Tensor images = at::empty({4, 3, side, side});
  float* pixels = images.mutable_data_ptr<float>();
  Random random(0, "noise that tries weights");
  for (std::int64_t i = 0; i < images.numel(); ++i) pixels[i] = static_cast<float>(random.normal());
  const Output output = model.forward(images.to(model.device()), /*update_statistics=*/false);
  return at::isfinite(output.logits).all().item<bool>();
}

}  // namespace

void save_adapted_weights(Model& model, const std::filesystem::path& path) {
  const std::string name = first_not_finite(model);
  if (!name.empty() || !answers_noise(model)) {
    fail(
        "--save-weights {}: not written, since adaptation has ruined the weights ({}); adapt at a "
        "lower rate, or with --guard rollback, which goes back when it comes to that",
        path.string(),
        name.empty() ? "their answers are not finite" : name + " holds values that are not finite");
  }
  save_weights(model, path);
}

}  // namespace gala
