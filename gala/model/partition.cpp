#include "gala/model/partition.h"

#include <algorithm>
#include <set>

#include "gala/base/error.h"

namespace gala {
namespace {

/// A pattern may name tensors or whole modules.
bool fits(const Parameter& parameter, const std::string& pattern) {
  return matches_pattern(parameter.name, pattern) || matches_pattern(parameter.module, pattern);
}

bool fits_any(const Parameter& parameter, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return fits(parameter, pattern); });
}

/// Up to three names, or beginnings of names, that come nearest to a pattern.
std::vector<std::string> nearest_names(const Model& model, const std::string& pattern) {
  std::set<std::string> unique;
  for (const Parameter& parameter : model.parameters()) {
    const std::string& name = parameter.name;
    for (std::size_t dot = name.find('.'); dot != std::string::npos;
         dot = name.find('.', dot + 1)) {
      unique.insert(name.substr(0, dot));
    }
    unique.insert(name);
  }
  std::string word = pattern;
  std::erase_if(word, [](char c) { return c == '*' || c == '?'; });
  while (word.ends_with('.')) word.pop_back();
  std::vector<std::string> candidates(unique.begin(), unique.end()), names;
  while (names.size() < 3) {
    const std::string name = nearest(word, candidates);
    if (name.empty()) break;
    names.push_back(name);
    std::erase(candidates, name);
  }
  if (names.empty()) names = {model.parameters().front().name, model.parameters().back().name};
  return names;
}

void check_patterns(const Model& model, const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    const auto& parameters = model.parameters();
    if (std::none_of(parameters.begin(), parameters.end(),
                     [&](const Parameter& parameter) { return fits(parameter, pattern); })) {
      fail<ConfigError>("the pattern \"{}\" matches no parameter of {} (nearest names: {})",
                        pattern, model.spec().name, fmt::join(nearest_names(model, pattern), ", "));
    }
  }
}

std::string layer_name(const Parameter& parameter, Granularity granularity) {
  switch (granularity) {
    case Granularity::kTensor:
      return parameter.name;
    case Granularity::kModule:
      return parameter.module;
    case Granularity::kBlock:
      if (parameter.in_head()) {
        fail<ConfigError>("{} is in the head, which is in no block", parameter.name);
      }
      return fmt::format("block{}", parameter.block);
  }
  fail("granularity {} does not exist", static_cast<int>(granularity));
}

}  // namespace

std::vector<Parameter*> adapted_parameters(Model& model, const ParameterFilter& filter,
                                           Granularity granularity) {
  check_patterns(model, filter.include);
  check_patterns(model, filter.exclude);
  std::vector<Parameter*> passed;
  for (Parameter& parameter : model.parameters()) {
    if (parameter.in_head() && (!filter.head || granularity == Granularity::kBlock)) continue;
    if (parameter.kind == ModuleKind::kNorm ? !filter.norms : !filter.others) continue;
    if (!filter.include.empty() && !fits_any(parameter, filter.include)) continue;
    if (fits_any(parameter, filter.exclude) || fits_any(parameter, filter.skip)) continue;
    passed.push_back(&parameter);
  }
  if (passed.empty()) {
    fail<ConfigError>(
        "no parameter of {} is left to adapt (partition {}, head {}, norms {}, others {}, include "
        "[{}], exclude [{}])",
        model.spec().name, format_value(granularity), format_value(filter.head),
        format_value(filter.norms), format_value(filter.others), fmt::join(filter.include, ", "),
        fmt::join(filter.exclude, ", "));
  }
  return passed;
}

LayerPartition make_partition(const std::vector<Parameter*>& parameters, Granularity granularity) {
  LayerPartition partition;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string name = layer_name(*parameters[i], granularity);
    auto layer = std::find_if(partition.layers.begin(), partition.layers.end(),
                              [&](const Layer& other) { return other.name == name; });
    if (layer == partition.layers.end()) {
      layer = partition.layers.insert(layer, Layer{name, {}, 0});
    }
    layer->tensors.push_back(i);
    layer->count += parameters[i]->value.numel();
  }
  return partition;
}

}  // namespace gala
