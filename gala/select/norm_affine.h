#pragma once
#include "gala/select/all.h"

namespace gala {

/// Only the scale and shift of norm layers, all of them at every step. With the loss `entropy` and
/// norm mode `batch` this is Tent (Wang et al. 2021).
class NormAffineSelector : public AllSelector {
 public:
  using AllSelector::AllSelector;
  void restrict(ParameterFilter& filter) const override { filter.others = false; }
};

}  // namespace gala
