#pragma once
#include "gala/select/selector.h"

namespace gala {

/// No layer ever moves: the source model, or batch statistics alone, by the norm mode.
class NoneSelector : public Selector {
 public:
  using Options = NoOptions;
  explicit NoneSelector(const Options&) {}
  std::vector<double> select(const Proposal& proposal) override;
  bool idle() const override { return true; }
};

}  // namespace gala
