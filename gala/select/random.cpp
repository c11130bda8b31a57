#include "gala/select/random.h"

namespace gala {

RandomSelector::RandomSelector(const Options& options, std::uint64_t seed)
    : options_(options), seed_(seed), random_(seed, name_) {}

void RandomSelector::name_run(const std::string& run) {
  if (options_.draws != RandomDraws::kRun) return;
  name_ = "selector random " + run;
  reset();
}

std::vector<double> RandomSelector::select(const Proposal& proposal) {
  std::vector<double> weights(proposal.layers.size(), 0.0);
  weights[random_.below(weights.size())] = 1;
  return weights;
}

void RandomSelector::reset() {
  random_ = Random(seed_, name_);
}

void RandomSelector::remember(Archive& archive) {
  Random::State state = random_.state();
  archive.value("selector_random", state);
  random_.set_state(state);
}

}  // namespace gala
