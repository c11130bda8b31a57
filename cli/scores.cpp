#include "cli/scores.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "gala/base/error.h"

namespace gala {
namespace {

double share(std::int64_t right, std::int64_t answered) {
  return answered > 0 ? static_cast<double>(right) / static_cast<double>(answered)
                      : std::numeric_limits<double>::quiet_NaN();
}

std::int64_t sum(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

}  // namespace

void Scores::add(std::size_t segment, const Tally& tally) {
  right_[segment] += tally.right;
  answered_[segment] += tally.counted;
}

double Scores::accuracy() const {
  return share(sum(right_), sum(answered_));
}

double Scores::accuracy(std::size_t segment) const {
  return share(right_[segment], answered_[segment]);
}

std::int64_t Scores::answered() const {
  return sum(answered_);
}

void Scores::load(const nlohmann::json& state) {
  auto right = state.at("right").get<std::vector<std::int64_t>>();
  auto answered = state.at("answered").get<std::vector<std::int64_t>>();
  if (right.size() != right_.size() || answered.size() != answered_.size()) {
    fail("the state was saved for another stream");
  }
  right_ = std::move(right);
  answered_ = std::move(answered);
}

std::string format_share(double share) {
  return std::isnan(share) ? "-" : fmt::format("{:.2f} %", 100 * share);
}

}  // namespace gala
