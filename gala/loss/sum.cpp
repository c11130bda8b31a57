#include "gala/loss/sum.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace gala {

LossNeeds SumLoss::needs() const {
  LossNeeds needs;
  for (const auto& term : terms_) {
    needs.teacher = needs.teacher || term->needs().teacher;
    needs.view = std::max(needs.view, term->needs().view);
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
