#include "gala/select/simple.h"

#include <algorithm>

#include "gala/base/error.h"

namespace gala {

std::vector<double> AllSelector::select(const Proposal& proposal) {
  return std::vector<double>(proposal.layers.size(), 1.0);
}

std::vector<double> NoneSelector::select(const Proposal& proposal) {
  return std::vector<double>(proposal.layers.size(), 0.0);
}

FixedSelector::FixedSelector(const Options& options) {
  std::size_t begin = 0;
  while (begin <= options.layers.size()) {
    const std::size_t end = std::min(options.layers.find(',', begin), options.layers.size());
    if (end > begin) patterns_.push_back(options.layers.substr(begin, end - begin));
    begin = end + 1;
  }
  if (patterns_.empty()) fail<ConfigError>("selector fixed: layers names no layer");
}

std::vector<double> FixedSelector::select(const Proposal& proposal) {
  std::vector<double> weights(proposal.layers.size(), 0.0);
  for (const std::string& pattern : patterns_) {
    bool used = false;
    for (std::size_t l = 0; l < weights.size(); ++l) {
      if (!matches_pattern(proposal.layers[l].name, pattern)) continue;
      weights[l] = 1;
      used = true;
    }
    if (used) continue;
    std::vector<std::string> names;
    for (const Layer& layer : proposal.layers.layers) names.push_back(layer.name);
    fail<ConfigError>("selector fixed: no layer is named \"{}\"{}", pattern,
                      suggestion(pattern, names));
  }
  return weights;
}

RandomSelector::RandomSelector(const Options&, std::uint64_t seed)
    : seed_(seed), random_(seed, "selector random") {}

std::vector<double> RandomSelector::select(const Proposal& proposal) {
  std::vector<double> weights(proposal.layers.size(), 0.0);
  weights[random_.below(weights.size())] = 1;
  return weights;
}

void RandomSelector::reset() { random_ = Random(seed_, "selector random"); }

void RandomSelector::save(State& state) const { state.values["selector_random"] = random_.state(); }

void RandomSelector::load(const State& state) {
  random_.set_state(state.values.at("selector_random").get<Random::State>());
}

}  // namespace gala
