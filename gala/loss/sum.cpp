#include "gala/loss/sum.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace gala {

LossNeeds SumLoss::needs() const {
  LossNeeds needs{.images = false};
  for (const auto& term : terms_) {
    const LossNeeds each = term->needs();
    needs.teacher |= each.teacher;
    needs.source |= each.source;
    needs.images |= each.images;
    needs.view = std::max(needs.view, each.view);
  }
  return needs;
}

LossTerms SumLoss::evaluate(const LossInput& input) const {
  LossTerms sum = terms_.front()->evaluate(input);
  for (std::size_t i = 1; i < terms_.size(); ++i)
    sum.value = sum.value + terms_[i]->evaluate(input).value;
  return sum;
}

}  // namespace gala
