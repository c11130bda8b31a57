#pragma once
#include "gala/select/selector.h"

namespace gala {

/// A budget of movement in place of a choice: every layer moves along its update u by
/// min(most · |u|, step · |θ|), at most so large a share of its own weights. Where `most` is 0 every layer moves by the
/// whole share, and the optimizer's rate means nothing.
class RelativeSelector : public Selector {
 public:
  struct Options {
    double step = 1e-4;
    double most = 1;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("step", &Options::step, "largest movement of a layer at a step, as a share of |θ|");
      option("most", &Options::most, "largest weight of a layer; 0: any");
    }
  };
  explicit RelativeSelector(const Options& options);
  std::vector<double> select(const Proposal& proposal) override;

 private:
  Options options_;
};

}  // namespace gala
