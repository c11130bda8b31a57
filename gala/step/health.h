#pragma once
#include <cstdint>
#include <vector>

namespace gala {

/// Stands in the place of a class where an answer is not finite. It is never right: a label of -1
/// means that nobody knows the class.
inline constexpr std::int64_t kNoClass = -1;

/// What the guard sees of a batch: no label, no domain.
struct BatchHealth {
  std::vector<std::int64_t> predictions;  ///< kNoClass where the answer is not finite
  double entropy_sum = 0;                 ///< of the finite answers' softmax, in nats
  double update_norm = 0;                 ///< of what was applied, largest over the batch's steps
  std::int64_t refused = 0;               ///< steps refused
  std::int64_t steps = 0;                 ///< all steps, refused ones included
  std::int64_t not_finite = 0;  ///< answers that are not finite where the source model's are
  std::int64_t broken = 0;  ///< images the source model cannot answer: they excuse refused steps
  bool lost = false;        ///< an update was so large that nothing of the source is left
};

/// The largest logit of each image and Σ entropy, of `images` rows of `classes` logits on the host.
/// Answers that are not finite are counted as such.
BatchHealth look_at(const float* logits, std::int64_t images, std::int64_t classes);

}  // namespace gala
