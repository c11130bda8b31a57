#include "gala/select/fixed.h"

#include <algorithm>

#include "gala/base/error.h"

namespace gala {

FixedSelector::FixedSelector(const Options& options) {
  std::size_t begin = 0;
  while (begin <= options.layers.size()) {
    const std::size_t end = std::min(options.layers.find(',', begin), options.layers.size());
    if (end > begin) patterns_.push_back(options.layers.substr(begin, end - begin));
    begin = end + 1;
  }
  if (patterns_.empty()) fail<ConfigError>("selector fixed: layers names no layer");
}

void FixedSelector::attach(const LayerPartition& layers) {
  weights_.assign(layers.size(), 0.0);
  for (const std::string& pattern : patterns_) {
    bool used = false;
    for (std::size_t l = 0; l < layers.size(); ++l) {
      if (!matches_pattern(layers[l].name, pattern)) continue;
      weights_[l] = 1;
      used = true;
    }
    if (used) continue;
    std::vector<std::string> names;
    for (const Layer& layer : layers.layers) names.push_back(layer.name);
    fail<ConfigError>("selector fixed: no layer is named \"{}\"{}", pattern,
                      suggestion(pattern, names));
  }
}

}  // namespace gala
