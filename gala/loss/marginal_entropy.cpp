#include "gala/loss/marginal_entropy.h"

#include <ATen/ATen.h>

#include <cmath>

#include "gala/loss/ranges.h"
#include "gala/loss/terms.h"

namespace gala {

MarginalEntropyLoss::MarginalEntropyLoss(const Options& options) : options_(options) {
  check_ranges(loss_ranges(), "loss marginal_entropy", options);
}

LossTerms MarginalEntropyLoss::evaluate(const LossInput& input) const {
  const at::Tensor& logits = input.view->logits;  // look by look, image by image
  const std::int64_t images = logits.size(0) / options_.looks;
  const at::Tensor log_p = at::log_softmax(logits, 1).view({options_.looks, images, -1});
  const at::Tensor log_mean =
      at::logsumexp(log_p, 0) - std::log(static_cast<double>(options_.looks));
  const at::Tensor entropy = -(log_mean.exp() * log_mean).sum(1);
  return {weighted_mean(entropy, input.weights), count_of(log_mean, input.weights)};
}

}  // namespace gala
