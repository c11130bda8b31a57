#include "gala/step/label_spread.h"

#include <algorithm>
#include <cmath>

#include "gala/base/error.h"

namespace gala {
namespace {

constexpr std::int64_t kBlock = 64;
constexpr double kLongRun = 2000;
constexpr double kKeep = 0.8;

}  // namespace

LabelSpread::LabelSpread(std::int64_t classes)
    : shares_(static_cast<std::size_t>(classes)), counts_(static_cast<std::size_t>(classes)) {
  reset();
}

void LabelSpread::take(std::span<const std::int64_t> predictions) {
  for (const std::int64_t each : predictions) {
    if (each < 0) continue;
    ++counts_[static_cast<std::size_t>(each)];
    ++taken_;
  }
  if (taken_ < kBlock) return;
  const double n = static_cast<double>(taken_);
  double far = 0, alike = 0;
  for (std::size_t c = 0; c < shares_.size(); ++c) {
    const double off = static_cast<double>(counts_[c]) - n * shares_[c];
    far += off * off;
    alike += shares_[c] * shares_[c];
  }
  // Where a single class is left, nothing can be told.
  const double seen = alike < 1 ? far / (n * (1 - alike)) : 1;
  value_ = std::max({1.0, kKeep * value_ + (1 - kKeep) * seen, seen / 2});
  const double fresh = std::min(1.0, n / kLongRun);
  for (std::size_t c = 0; c < shares_.size(); ++c) {
    shares_[c] += fresh * (static_cast<double>(counts_[c]) / n - shares_[c]);
  }
  std::ranges::fill(counts_, 0);
  taken_ = 0;
}

void LabelSpread::reset() {
  std::ranges::fill(shares_, 1 / static_cast<double>(shares_.size()));
  std::ranges::fill(counts_, 0);
  taken_ = 0;
  value_ = 1;
}

void LabelSpread::remember(Archive& archive) {
  const std::size_t classes = shares_.size();
  archive.value("label_spread_shares", shares_);
  archive.value("label_spread_counts", counts_);
  archive.value("label_spread_taken", taken_);
  archive.value("label_spread", value_);
  if (shares_.size() != classes || counts_.size() != classes) {
    throw Error("the spread of labels is of another number of classes");
  }
}

}  // namespace gala
