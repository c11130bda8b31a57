#pragma once
#include "gala/select/selector.h"

namespace gala {

/// Moves the layer with the largest relative update |u| / |θ|, if it reaches `least`: the worked
/// example of docs/adding_a_method.md.
class LargestUpdateSelector : public Selector {
 public:
  struct Options {
    double least = 0;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("least", &Options::least, "a smaller relative update moves nothing");
    }
  };
  explicit LargestUpdateSelector(const Options& options);
  std::vector<double> select(const Proposal& proposal) override;

 private:
  Options options_;
};

}  // namespace gala
