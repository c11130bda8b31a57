#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "gala/base/error.h"
#include "gala/optim/optimizer.h"

namespace gala {

/// An optimizer that is a Rule (see sweep.h) and nothing else. Subclasses give the rule of a layer
/// after so many of its steps.
template <class Rule>
class RuleOptimizer : public Optimizer {
 public:
  void attach(const StepSite& site) override {
    workspace_ = &site.workspace;
    for (Memory& moment : moments_) {
      moment = site.workspace.make(site.layout.size * static_cast<std::int64_t>(sizeof(float)));
    }
    steps_.assign(site.layers.size(), 0);
    rules_.resize(site.layers.size());
    sweep_ = make_sweep(
        {site.layout, site.layers, site.values, moments_, site.sum_values, site.workspace});
  }

  bool can_be_captured() const override { return sweep_->can_be_captured(); }

  void prepare() override { set_rules(/*measures=*/true); }

  void measure(GradientPointers gradients, const float* loss, const DisplacementView& displacement,
               double* table) override {
    sweep_->measure(gradients, loss, displacement, which_ == Moments::kAll, table);
  }

  void apply(GradientPointers gradients, const DisplacementView& displacement,
             std::span<const double> weights) override {
    sweep_->apply(gradients, displacement, which_ == Moments::kSelected, weights);
    for (std::size_t l = 0; l < steps_.size(); ++l) {
      steps_[l] += which_ == Moments::kAll || weights[l] != 0;
    }
  }

  void step(GradientPointers gradients) override {
    set_rules(/*measures=*/false);
    whole_.assign(steps_.size(), 1.0);
    // As a difference, the displacement takes no part in a move.
    sweep_->apply(gradients, {.difference = true}, /*advance=*/true, whole_);
    for (std::int64_t& steps : steps_) ++steps;
  }

  void reset() override {
    for (const Memory& moment : moments_) workspace_->zero(moment);
    std::fill(steps_.begin(), steps_.end(), 0);
  }

  void remember(Archive& archive) override {
    std::vector<std::int64_t> steps = steps_;
    archive.value("optimizer_steps", steps);
    if (steps.size() != steps_.size()) {
      fail("the state was saved with another partition into layers");
    }
    for (std::size_t k = 0; k < moments_.size(); ++k) {
      archive.buffer(fmt::format("moment{}/", k + 1), moments_[k]);
    }
    steps_ = std::move(steps);
  }

 protected:
  explicit RuleOptimizer(Moments which) : which_(which) {}
  /// The rule for a layer's step number `step` (1, 2, ...).
  virtual Rule rule(std::int64_t step) const = 0;
  /// The passes: those of the workspace, for the rules it knows. A rule of one's own brings its own.
  virtual std::unique_ptr<Sweep<Rule>> make_sweep(const SweepContext<Rule>& context) const {
    if constexpr (requires { context.workspace.make_sweep(context); }) {
      return context.workspace.make_sweep(context);
    }
    fail("the workspace has no passes for this rule");
  }

 private:
  void set_rules(bool measures) {
    for (std::size_t l = 0; l < steps_.size(); ++l) {
      // Layers at the same step have the same rule; nearly always that is all of them.
      rules_[l] = l > 0 && steps_[l] == steps_[l - 1] ? rules_[l - 1] : rule(steps_[l] + 1);
    }
    sweep_->set_rules(rules_, measures);
  }

  Moments which_;
  Workspace* workspace_ = nullptr;
  MomentBuffers<Rule> moments_;
  std::vector<std::int64_t> steps_;  ///< of each layer
  std::vector<Rule> rules_;          ///< of the coming step
  std::vector<double> whole_;        ///< weights of 1
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
