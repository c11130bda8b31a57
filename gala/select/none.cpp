#include "gala/select/none.h"

namespace gala {

std::vector<double> NoneSelector::select(const Proposal& proposal) {
  return std::vector<double>(proposal.layers.size(), 0.0);
}

}  // namespace gala
