#pragma once
#include "gala/select/selector.h"

namespace gala {

/// Every layer moves at every step: plain adaptation.
class AllSelector : public Selector {
 public:
  using Options = NoOptions;
  explicit AllSelector(const Options&) {}
  bool reads_values() const override { return false; }
  std::vector<double> select(const Proposal& proposal) override;
};

}  // namespace gala
