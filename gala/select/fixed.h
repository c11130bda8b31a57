#pragma once
#include <string>

#include "gala/select/selector.h"

namespace gala {

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
  void attach(const LayerPartition& layers) override;
  bool reads_values() const override { return false; }
  std::vector<double> select(const Proposal&) override { return weights_; }

 private:
  std::vector<std::string> patterns_;
  std::vector<double> weights_;
};

}  // namespace gala
