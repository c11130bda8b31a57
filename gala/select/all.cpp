#include "gala/select/all.h"

namespace gala {

std::vector<double> AllSelector::select(const Proposal& proposal) {
  return std::vector<double>(proposal.layers.size(), 1.0);
}

}  // namespace gala
