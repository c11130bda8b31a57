#pragma once
#include <cstdint>
#include <string>
#include <utility>

#include "gala/base/random.h"
#include "gala/layer/archive.h"

namespace gala {

/// The draws of a selector: of a sequence that seed and selector name, and the run where it is told, and that a
/// saved state goes on with.
class Draws {
 public:
  Draws(std::uint64_t seed, std::string selector)
      : seed_(seed), selector_(std::move(selector)), name_("selector " + selector_) {
    begin();
  }

  /// From here on, and from the beginning, those of this run.
  void name_run(const std::string& run) {
    name_ = "selector " + selector_ + " " + run;
    begin();
  }
  /// The first draw is the next one again.
  void begin() { random_ = Random(seed_, name_); }

  std::uint64_t below(std::uint64_t bound) { return random_.below(bound); }
  double uniform() { return random_.uniform(); }

  void remember(Archive& archive) {
    Random::State state = random_.state();
    archive.value("selector_" + selector_, state);
    random_.set_state(state);
  }

 private:
  std::uint64_t seed_;
  std::string selector_, name_;
  Random random_{0, ""};
};

}  // namespace gala
