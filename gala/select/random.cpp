#include "gala/select/random.h"

namespace gala {

RandomSelector::RandomSelector(const Options&, std::uint64_t seed)
    : seed_(seed), random_(seed, "selector random") {}

std::vector<double> RandomSelector::select(const Proposal& proposal) {
  std::vector<double> weights(proposal.layers.size(), 0.0);
  weights[random_.below(weights.size())] = 1;
  return weights;
}

void RandomSelector::reset() {
  random_ = Random(seed_, "selector random");
}

void RandomSelector::save(State& state) const {
  state.values["selector_random"] = random_.state();
}

void RandomSelector::load(const State& state) {
  random_.set_state(state.values.at("selector_random").get<Random::State>());
}

}  // namespace gala
