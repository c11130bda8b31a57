#pragma once
#include <string>

#include "gala/base/random.h"
#include "gala/select/selector.h"

namespace gala {

/// Every layer moves at every step: plain adaptation.
class AllSelector : public Selector {
 public:
  using Options = NoOptions;
  explicit AllSelector(const Options&) {}
  std::vector<double> select(const Proposal& proposal) override;
};

/// No layer ever moves: the source model, or batch statistics alone, by the norm mode.
class NoneSelector : public Selector {
 public:
  using Options = NoOptions;
  explicit NoneSelector(const Options&) {}
  std::vector<double> select(const Proposal& proposal) override;
  bool idle() const override { return true; }
};

/// The same layers at every step: those whose name fits one of the patterns. With `--partition block`
/// and `layers=block2` this is the paper's per-block oracle.
class FixedSelector : public Selector {
 public:
  struct Options {
    std::string layers = "*";
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("layers", &Options::layers, "patterns on layer names, separated by commas");
    }
  };
  explicit FixedSelector(const Options& options);
  std::vector<double> select(const Proposal& proposal) override;

 private:
  std::vector<std::string> patterns_;
};

/// One layer a step, drawn evenly.
class RandomSelector : public Selector {
 public:
  using Options = NoOptions;
  RandomSelector(const Options&, std::uint64_t seed);
  std::vector<double> select(const Proposal& proposal) override;
  void reset() override;
  void save(State& state) const override;
  void load(const State& state) override;

 private:
  std::uint64_t seed_;
  Random random_;
};

/// Only the scale and shift of norm layers, all of them at every step. With the loss `entropy` and
/// norm mode `batch` this is Tent (Wang et al. 2021).
class NormAffineSelector : public AllSelector {
 public:
  using AllSelector::AllSelector;
  void restrict(ParameterFilter& filter) const override { filter.others = false; }
};

}  // namespace gala
