#include "gala/loss/consistency.h"

#include <ATen/ATen.h>

#include "gala/loss/ranges.h"
#include "gala/loss/terms.h"

namespace gala {

at::Tensor compare(const at::Tensor& p_logits, const at::Tensor& q_logits, Comparison form) {
  const at::Tensor log_p = at::log_softmax(p_logits, 1), log_q = at::log_softmax(q_logits, 1);
  const at::Tensor forth = -(log_p.exp() * log_q).sum(1);
  if (form == Comparison::kCrossEntropy) return forth;
  return 0.5 * forth - 0.5 * (log_q.exp() * log_p).sum(1);
}

ConsistencyLoss::ConsistencyLoss(const Options& options) : options_(options) {
  check_ranges(loss_ranges(), "loss consistency", options);
}

LossTerms ConsistencyLoss::evaluate(const LossInput& input) const {
  const at::Tensor& logits = input.student.logits;
  const auto seen_twice = [&](const at::Tensor& all) {
    return input.rows.defined() && all.defined() ? all.index_select(0, input.rows) : all;
  };
  const at::Tensor losses = compare(seen_twice(logits), input.view->logits, options_.form);
  const at::Tensor weights = seen_twice(input.weights);
  // Over the whole batch, as the term beside it.
  const at::Tensor sum = (weights.defined() ? losses * weights : losses).sum();
  const double weight = options_.per_class > 0
                            ? options_.per_class * static_cast<double>(logits.size(1))
                            : options_.weight;
  return {sum * (weight / static_cast<double>(logits.size(0))), count_of(logits, input.weights)};
}

}  // namespace gala
