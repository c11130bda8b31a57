#pragma once
#include <memory>
#include <vector>

#include "gala/loss/loss.h"

namespace gala {

/// The sum of several losses; see make_loss.
class SumLoss : public Loss {
 public:
  /// At least one.
  explicit SumLoss(std::vector<std::unique_ptr<Loss>> terms) : terms_(std::move(terms)) {}
  LossNeeds needs() const override;
  LossTerms evaluate(const LossInput& input) const override;
  bool adapts_head() const override { return terms_.front()->adapts_head(); }

 private:
  std::vector<std::unique_ptr<Loss>> terms_;
};

}  // namespace gala
