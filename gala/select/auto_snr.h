#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "gala/select/selector.h"

namespace gala {

enum class SnrDefinition { kCode, kPaper };
constexpr std::array<std::string_view, 2> enum_names(SnrDefinition) {
  return {"code", "paper"};
}

/// Signal-to-noise ratio of the gradient (Lee et al. 2023, "Surgical fine-tuning", there also called
/// evidence-based criterion): a layer moves only if its score reaches the threshold.
///
///  - `code`, as their program computes it: mean over entries of g² / (Var(g along the tensor's first
///    axis) + 1e-8), from the gradient of this batch alone.
///  - `paper`, as their text defines it: mean over entries of ḡ² / (Var g + 1e-8) across examples,
///    divided by the largest score over layers. Examples stand for the batch gradients of the last
///    `history` steps; with fewer than two, every layer moves.
///
/// Scores are made anew at every step (see AutoRgnSelector on epochs). Norm layers are left out unless
/// `norms=yes`. A layer of several tensors scores the mean over all its entries.
class AutoSnrSelector : public Selector {
 public:
  struct Options {
    SnrDefinition definition = SnrDefinition::kCode;
    double threshold = 0.95;
    std::int64_t history = 5;
    bool norms = false;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("definition", &Options::definition, "variance over output channels, or over batches");
      option("threshold", &Options::threshold, "a layer moves if its score is at least this");
      option("history", &Options::history, "batch gradients that `paper` looks back on");
      option("norms", &Options::norms, "norm layers take part too");
    }
  };
  explicit AutoSnrSelector(const Options& options);
  std::vector<double> select(const Proposal& proposal) override;
  Granularity default_granularity() const override { return Granularity::kTensor; }
  bool reads_values() const override { return false; }
  void restrict(ParameterFilter& filter) const override { filter.norms = options_.norms; }
  void reset() override { history_.clear(); }
  void restart() override { history_.clear(); }
  void remember(Archive& archive) override;

 private:
  std::vector<double> score(const Proposal& proposal) const;
  void keep_gradients(const Proposal& proposal);

  Options options_;
  std::vector<Memory> history_;  ///< gradients in the arena's layout, newest last
};

}  // namespace gala
