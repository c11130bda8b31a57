#pragma once
#include <cstdint>
#include <optional>

#include "gala/method/reset_rule.h"

namespace gala {

/// Every so many steps (Press et al. 2023, RDumb).
class EveryReset : public ResetRule {
 public:
  struct Options {
    std::int64_t steps = 1000;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("steps", &Options::steps, "between two resets");
    }
  };
  explicit EveryReset(const Options& options);
  bool is_due(const StepRecord& record, const at::Tensor& logits) override;
  void reset() override { steps_ = 0; }
  void remember(StateArchive& archive) override { archive.value("reset_every_steps", steps_); }

 private:
  Options options_;
  std::int64_t steps_ = 0;  ///< since the last reset
};

/// A moving mean of numbers, which begins with the first one.
class MovingMean {
 public:
  /// `keep`: the share of it that stays where a number comes.
  explicit MovingMean(double keep) : keep_(keep) {}

  /// Takes a number in and returns the mean.
  double take(double value);
  void reset() { mean_.reset(); }
  void remember(StateArchive& archive, const char* name);

 private:
  double keep_;
  std::optional<double> mean_;
};

/// When the moving mean of the loss falls below a bound (Niu et al. 2023, SAR: the entropy at its second
/// pass): the network is sure of everything.
class LossReset : public ResetRule {
 public:
  struct Options {
    double below = 0.2;
    double keep = 0.9;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("below", &Options::below, "the moving mean of the loss that is too small");
      option("keep", &Options::keep, "share of the moving mean that stays at each step");
    }
  };
  explicit LossReset(const Options& options);
  bool is_due(const StepRecord& record, const at::Tensor& logits) override;
  void reset() override { mean_.reset(); }
  void remember(StateArchive& archive) override { mean_.remember(archive, "reset_loss_mean"); }

 private:
  Options options_;
  MovingMean mean_;
};

/// When the answers keep to few classes: the moving mean of 1 - H(p̄) / ln C, with p̄ the mean answer of a
/// batch, exceeds a bound. 0 is every class alike, 1 a single class.
class ConcentrationReset : public ResetRule {
 public:
  struct Options {
    double above = 0.5;
    double keep = 0.9;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("above", &Options::above,
             "the moving mean of the concentration that is too large, 0 to 1");
      option("keep", &Options::keep, "share of the moving mean that stays at each step");
    }
  };
  explicit ConcentrationReset(const Options& options);
  bool is_due(const StepRecord& record, const at::Tensor& logits) override;
  void reset() override { mean_.reset(); }
  void remember(StateArchive& archive) override {
    mean_.remember(archive, "reset_concentration_mean");
  }

 private:
  Options options_;
  MovingMean mean_;
};

}  // namespace gala
