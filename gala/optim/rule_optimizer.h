#pragma once
#include <c10/core/GradMode.h>

#include <string>
#include <vector>

#include "gala/base/error.h"
#include "gala/optim/sweep.h"

namespace gala {

/// An optimizer that is a Rule (see sweep.h) and nothing else. Subclasses give the rule of a layer
/// after so many of its steps.
template <class Rule>
class RuleOptimizer : public Optimizer {
 public:
  void attach(const ParameterArena& arena, const LayerPartition& layers) override {
    for (at::Tensor& moment : moments_) moment = arena.make_buffer();
    chunks_ = make_chunks(arena, layers);
    steps_.assign(layers.size(), 0);
  }

  std::span<const LayerSums> measure(const Gradients& gradients, const ParameterArena& arena,
                                     const LayerPartition& layers,
                                     const Displacement& displacement) override {
    const c10::NoGradGuard no_grad;
    if (which_ == Moments::kAll) {
      for (std::int64_t& steps : steps_) ++steps;
    }
    const std::vector<Rule> rules = make_rules();
    const SweepContext<Rule> context{gradients, arena,    layers,
                                     rules,     moments_, which_ == Moments::kAll};
    sums_ = arena.values().is_cpu() ? measure_on_cpu(context, chunks_, displacement)
                                    : measure_plain(context, displacement);
    return sums_;
  }

  void apply(const Gradients& gradients, ParameterArena& arena, const LayerPartition& layers,
             Displacement& displacement, std::span<const double> weights) override {
    const c10::NoGradGuard no_grad;
    const std::vector<Rule> rules = make_rules();
    const SweepContext<Rule> context{gradients, arena,    layers,
                                     rules,     moments_, which_ == Moments::kSelected};
    if (arena.values().is_cpu()) {
      apply_on_cpu(context, chunks_, displacement, weights);
    } else if (moves_as_one(arena, layers, weights)) {
      apply_whole(context, displacement, static_cast<float>(weights[0]));
    } else {
      apply_plain(context, displacement, weights);
    }
    for (std::size_t l = 0; which_ == Moments::kSelected && l < steps_.size(); ++l) {
      if (weights[l] != 0) ++steps_[l];
    }
  }

  void reset() override {
    for (at::Tensor& moment : moments_) moment.zero_();
    std::fill(steps_.begin(), steps_.end(), 0);
  }

  void save(const ParameterArena& arena, State& state) const override {
    for (std::size_t k = 0; k < moments_.size(); ++k) {
      arena.save(moments_[k], fmt::format("moment{}/", k + 1), state);
    }
    state.values["optimizer_steps"] = steps_;
  }

  void load(const ParameterArena& arena, const State& state) override {
    if (!state.values.contains("optimizer_steps")) fail("the state lacks optimizer_steps");
    auto steps = state.values["optimizer_steps"].get<std::vector<std::int64_t>>();
    if (steps.size() != steps_.size())
      fail("the state was saved with another partition into layers");
    for (std::size_t k = 0; k < moments_.size(); ++k) {
      arena.load(moments_[k], fmt::format("moment{}/", k + 1), state);
    }
    steps_ = std::move(steps);
  }

 protected:
  explicit RuleOptimizer(Moments which) : which_(which) {}
  /// The rule for a layer's step number `step` (1, 2, ...).
  virtual Rule rule(std::int64_t step) const = 0;

 private:
  /// True when the layers cover the arena and all get the same weight at the same step of theirs.
  bool moves_as_one(const ParameterArena& arena, const LayerPartition& layers,
                    std::span<const double> weights) const {
    std::size_t tensors = 0;
    for (std::size_t l = 0; l < layers.size(); ++l) {
      tensors += layers[l].tensors.size();
      if (weights[l] != weights[0] || steps_[l] != steps_[0]) return false;
    }
    return tensors == arena.entries().size() && weights[0] != 0;
  }

  std::vector<Rule> make_rules() const {
    std::vector<Rule> rules;
    rules.reserve(steps_.size());
    for (const std::int64_t steps : steps_)
      rules.push_back(rule(steps + (which_ == Moments::kSelected)));
    return rules;
  }

  Moments which_;
  MomentBuffers<Rule> moments_;
  std::vector<std::int64_t> steps_;  ///< of each layer
  std::vector<SweepChunk> chunks_;
  std::vector<LayerSums> sums_;
};

/// Throws ConfigError unless low <= value (< high, when given).
inline void check_range(std::string_view optimizer, std::string_view option, double value,
                        double low, double high) {
  if (!(value >= low && value < high)) {
    fail<ConfigError>("optimizer {}: {} must lie in [{}, {}), not {}", optimizer, option, low, high,
                      value);
  }
}

}  // namespace gala
