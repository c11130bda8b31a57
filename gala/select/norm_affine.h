#pragma once
#include <string>
#include <vector>

#include "gala/select/all.h"

namespace gala {

/// Only the scale and shift of norm layers, all of them at every step. With the loss `entropy` and
/// norm mode `batch` this is Tent (Wang et al. 2021).
class NormAffineSelector : public AllSelector {
 public:
  struct Options {
    std::vector<std::string> skip = {};
    template <class Visitor>
    static void visit(Visitor&& option) {
      option(
          "skip", &Options::skip,
          "patterns of names that stay as they are, where there are such; SAR and DeYO leave out "
          "layer4.* of a ResNet");
    }
  };
  explicit NormAffineSelector(const Options& options)
      : AllSelector(AllSelector::Options{}), skip_(options.skip) {}
  void restrict(ParameterFilter& filter) const override {
    filter.others = false;
    filter.skip = skip_;
  }

 private:
  std::vector<std::string> skip_;
};

}  // namespace gala
