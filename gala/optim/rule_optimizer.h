#pragma once
#include <c10/core/GradMode.h>

#include <memory>
#include <string>
#include <vector>

#include "gala/base/error.h"
#include "gala/optim/cpu_sweep.h"
#include "gala/optim/optimizer.h"
#include "gala/optim/plain_sweep.h"

namespace gala {

/// An optimizer that is a Rule (see sweep.h) and nothing else. Subclasses give the rule of a layer
/// after so many of its steps, and kernels for devices other than the CPU where they have some.
template <class Rule>
class RuleOptimizer : public Optimizer {
 public:
  void attach(const ParameterArena& arena, const LayerPartition& layers, bool sum_values) override {
    for (at::Tensor& moment : moments_) moment = arena.make_buffer();
    steps_.assign(layers.size(), 0);
    rules_.resize(layers.size());
    const SweepContext<Rule> context{arena, layers, moments_, sum_values};
    if (arena.values().is_cpu()) {
      sweep_ = std::make_unique<CpuSweep<Rule>>(context);
    } else {
      sweep_ = make_device_sweep(context);
      if (!sweep_) sweep_ = std::make_unique<PlainSweep<Rule>>(context);
    }
  }

  bool can_be_captured() const override { return sweep_->can_be_captured(); }

  void prepare() override {
    for (std::size_t l = 0; l < steps_.size(); ++l) {
      // Layers at the same step have the same rule; nearly always that is all of them.
      rules_[l] = l > 0 && steps_[l] == steps_[l - 1] ? rules_[l - 1] : rule(steps_[l] + 1);
    }
    const c10::NoGradGuard no_grad;
    sweep_->set_rules(rules_);
  }

  void measure(const Gradients& gradients, const at::Tensor& loss, const Displacement& displacement,
               const at::Tensor& table) override {
    const c10::NoGradGuard no_grad;
    sweep_->measure(gradients, loss, displacement, which_ == Moments::kAll, table);
  }

  void apply(const Gradients& gradients, const Displacement& displacement,
             std::span<const double> weights) override {
    const c10::NoGradGuard no_grad;
    sweep_->apply(gradients, displacement, which_ == Moments::kSelected, weights);
    for (std::size_t l = 0; l < steps_.size(); ++l) {
      steps_[l] += which_ == Moments::kAll || weights[l] != 0;
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
  /// The passes on the arena's device, which is not the CPU; null where LibTorch's own operations
  /// must do.
  virtual std::unique_ptr<Sweep<Rule>> make_device_sweep(const SweepContext<Rule>&) const {
    return nullptr;
  }

 private:
  Moments which_;
  MomentBuffers<Rule> moments_;
  std::vector<std::int64_t> steps_;  ///< of each layer
  std::vector<Rule> rules_;          ///< of the coming step
  std::unique_ptr<Sweep<Rule>> sweep_;
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
