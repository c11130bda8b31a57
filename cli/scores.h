#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gala/adapt/tally.h"

namespace gala {

/// Right answers, segment by segment of a stream.
class Scores {
 public:
  explicit Scores(std::size_t segments) : right_(segments, 0), answered_(segments, 0) {}

  /// Takes in the answers to one batch.
  void add(std::size_t segment, const Tally& tally);

  /// Share of right answers among those with a label, 0..1; NaN when there are none.
  double accuracy() const;
  double accuracy(std::size_t segment) const;
  std::int64_t answered() const;
  std::int64_t answered(std::size_t segment) const { return answered_[segment]; }

  nlohmann::json save() const { return {{"right", right_}, {"answered", answered_}}; }
  void load(const nlohmann::json& state);

 private:
  std::vector<std::int64_t> right_, answered_;
};

/// "81.25 %", or "-" for NaN.
std::string format_share(double share);

}  // namespace gala
