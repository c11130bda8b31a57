#pragma once
#include "gala/select/selector.h"

namespace gala {

/// A selector whose weights are those of a probe (gala/method/probe.h): a second gradient, of another
/// scalar than the loss. Layers are single tensors, and the head stays as it is.
class ProbedSelector : public Selector {
 public:
  std::vector<double> select(const Proposal& proposal) override {
    return {proposal.probed.begin(), proposal.probed.end()};
  }
  bool reads_values() const override { return false; }
  Granularity default_granularity() const override { return Granularity::kTensor; }
  void restrict(ParameterFilter& filter) const override { filter.head = false; }
};

/// PALM (Maharana et al. 2025): a layer may move when the gradient of the cross-entropy to all classes
/// alike, at temperature T, is small (|g|₁ <= threshold); its weight is the mean over its entries of
/// |s - ŝ| / ŝ, where s = |θ g| is the sensitivity of an entry and ŝ its moving mean. As in the published
/// code the target of every class is 1, not 1/C, and a layer that is no longer chosen keeps the weight
/// it had. The published optimizer is a new Adam at every step, which is
/// `adam:beta1=0,beta2=0`.
class PalmSelector : public ProbedSelector {
 public:
  struct Options {
    double threshold = 1;
    double temperature = 50;
    double keep = 0.5;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("threshold", &Options::threshold, "largest |g|1 of a layer that may move");
      option("temperature", &Options::temperature,
             "of the answers that are compared with all alike");
      option("keep", &Options::keep, "share of the moving sensitivity that stays at each step");
    }
  };
  explicit PalmSelector(const Options& options);
  Spec probe() const override { return options_to_spec("palm", options_); }

 private:
  Options options_;
};

/// PALM's layers at a pace that neither the optimizer's rate nor the size of batches sets: every number of a layer
/// moves by `step` times the layer's weight, where the rule moves each by its rate (a new Adam at every
/// step, `adam:beta1=0,beta2=0`), and by less where a gradient is of fewer than `images` independent images.
///
///  - `share`: the numbers of a kernel, a convolution's or a linear layer's, lie around zero, and how far says their root
///    mean square; a step that is small for one network is large for a wider one. So they move by that share of it.
///    Scales, shifts and biases, which are compared with 1, go by `step`.
///  - `calm`: where norm layers hardly leave the source's statistics (Proposal::moved), little is wrong,
///    and as little moves.
class PacedSelector : public ProbedSelector {
 public:
  struct Options {
    double step = 0.0005;
    double share = 0;
    bool calm = false;
    double images = 64;
    double most = 0;
    double threshold = PalmSelector::Options{}.threshold;
    double temperature = PalmSelector::Options{}.temperature;
    double keep = PalmSelector::Options{}.keep;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("step", &Options::step, "how far a number moves at a weight of 1, whatever the rate");
      option(
          "share", &Options::share,
          "the same for a kernel, as a share of the root mean square of its numbers; 0: as step");
      option("calm", &Options::calm, "times how far statistics moved (norm mode adaptive)");
      option("images", &Options::images, "independent images that are enough for a whole step");
      option("most", &Options::most, "largest weight of a layer; 0: any");
      option("threshold", &Options::threshold, "palm's: largest |g|1 of a layer that may move");
      option("temperature", &Options::temperature, "palm's");
      option("keep", &Options::keep, "palm's: share of the moving sensitivity that stays");
    }
  };
  explicit PacedSelector(const Options& options);
  Spec probe() const override;
  bool reads_values() const override { return options_.share > 0; }
  std::vector<double> select(const Proposal& proposal) override;

 private:
  /// How far a number of a layer moves at a weight of 1.
  double step_of(const Proposal& proposal, std::size_t layer) const;

  Options options_;
};

/// LAW (Park et al. 2024): the weight of a layer is (f - min f) / (max f - min f) to the power of
/// `power`, where f is the root of the mean of g², summed over all steps so far, of the cross-entropy against
/// the network's own labels: an estimate of its Fisher information. The published
/// optimizer is a new Adam at every step, which is `adam:beta1=0,beta2=0`. The code in PALM's repository never clears
/// gradients between steps, so that g there is the sum of this gradient and of what the step before minimised:
/// `carried`. The default is LAW's paper.
class LawSelector : public ProbedSelector {
 public:
  struct Options {
    double power = 1;
    bool carried = false;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("power", &Options::power, "the larger, the fewer layers move");
      option("carried", &Options::carried,
             "the gradient of the step before is added to what is squared, as in published code");
    }
  };
  explicit LawSelector(const Options& options);
  Spec probe() const override { return options_to_spec("law", options_); }

 private:
  Options options_;
};

}  // namespace gala
