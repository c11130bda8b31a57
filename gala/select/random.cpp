#include "gala/select/random.h"

namespace gala {

RandomSelector::RandomSelector(const Options& options, std::uint64_t seed)
    : options_(options), draws_(seed, "random") {}

void RandomSelector::name_run(const std::string& run) {
  if (options_.draws == RandomDraws::kRun) draws_.name_run(run);
}

std::vector<double> RandomSelector::select(const Proposal& proposal) {
  std::vector<double> weights(proposal.layers.size(), 0.0);
  weights[draws_.below(weights.size())] = 1;
  return weights;
}

}  // namespace gala
