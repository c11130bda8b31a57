#pragma once
#include "gala/base/random.h"
#include "gala/select/selector.h"

namespace gala {

/// One layer a step, drawn evenly.
class RandomSelector : public Selector {
 public:
  using Options = NoOptions;
  RandomSelector(const Options&, std::uint64_t seed);
  bool reads_values() const override { return false; }
  std::vector<double> select(const Proposal& proposal) override;
  void reset() override;
  void save(State& state) const override;
  void load(const State& state) override;

 private:
  std::uint64_t seed_;
  Random random_;
};

}  // namespace gala
