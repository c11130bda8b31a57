#pragma once
#include <string>
#include <vector>

#include "gala/select/draws.h"
#include "gala/select/selector.h"

namespace gala {

/// One layer a step, found by trying: the reward of a choice is by how much the loss of the next step is below this
/// one's, a number that needs no label. The value of a layer is the moving mean of its rewards, and the layer of the
/// largest value moves (the first among equals), but at a share `explore` of the steps one that is drawn evenly. The next
/// step is of other images, so rewards are mostly noise, and a layer must be tried many times.
class BanditSelector : public Selector {
 public:
  struct Options {
    double explore = 0.1;
    double keep = 0.9;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("explore", &Options::explore, "share of the steps at which any layer is tried");
      option("keep", &Options::keep, "share of a layer's value that stays when it is rewarded");
    }
  };
  BanditSelector(const Options& options, std::uint64_t seed);

  bool reads_values() const override { return false; }
  Granularity default_granularity() const override { return Granularity::kBlock; }
  void name_run(const std::string& run) override { draws_.name_run(run); }
  void attach(const LayerPartition& layers) override;
  std::vector<double> select(const Proposal& proposal) override;
  void reset() override;
  void restart() override;
  void remember(Archive& archive) override;

 private:
  Options options_;
  Draws draws_;
  std::vector<double> values_;  ///< by layer
  std::int64_t chosen_ = -1;    ///< at the step before; -1: there was none
  double loss_ = 0;             ///< at that step
};

}  // namespace gala
