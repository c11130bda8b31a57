#pragma once
#include "gala/select/selector.h"

namespace gala {

/// Relative gradient norm (Lee et al. 2023, "Surgical fine-tuning"): the weight of a layer is
/// |g| / |θ|, divided by the largest over layers. Their code scores tensors once an epoch over five
/// batches and builds a new optimizer; a stream has no epochs, so every step scores its own gradient
/// and one optimizer state is kept. Norm layers are left out, told by their kind (their code leaves
/// out names with "bn", which misses down-sampling norms). `norms=yes` keeps them.
class AutoRgnSelector : public Selector {
 public:
  struct Options {
    bool norms = false;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("norms", &Options::norms, "norm layers take part too");
    }
  };
  explicit AutoRgnSelector(const Options& options) : options_(options) {}
  std::vector<double> select(const Proposal& proposal) override;
  Granularity default_granularity() const override { return Granularity::kTensor; }
  void restrict(ParameterFilter& filter) const override { filter.norms = options_.norms; }

 private:
  Options options_;
};

}  // namespace gala
