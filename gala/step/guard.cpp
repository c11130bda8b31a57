#include "gala/step/guard.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "gala/base/error.h"
#include "gala/step/health.h"

namespace gala {
namespace {

std::vector<double> shares_of(const std::vector<std::int64_t>& histogram, std::int64_t total) {
  std::vector<double> shares;
  for (const std::int64_t count : histogram) {
    shares.push_back(total > 0 ? static_cast<double>(count) / static_cast<double>(total) : 0.0);
  }
  return shares;
}

double effective_number(const std::vector<double>& shares) {
  double entropy = 0;
  for (const double share : shares) {
    if (share > 0) entropy -= share * std::log(share);
  }
  return std::exp(entropy);
}

/// Plain values, by name in a piece of JSON.
class JsonValues : public Archive {
 public:
  explicit JsonValues(nlohmann::json& values, bool loads) : values_(values), loads_(loads) {}

  bool loads() const override { return loads_; }
  void buffer(const std::string& prefix, const Memory&) override { refuse(prefix); }
  Memory make_buffer() override { refuse("a buffer"); }

 protected:
  void exchange(const std::string& name, nlohmann::json& value) override {
    if (!loads_) {
      values_[name] = value;
    } else {
      value = values_.at(name);
    }
  }

 private:
  [[noreturn]] static void refuse(const std::string& what) {
    fail("the guard keeps no buffers: {}", what);
  }

  nlohmann::json& values_;
  bool loads_;
};

}  // namespace

nlohmann::ordered_json HealthEvent::to_json() const {
  nlohmann::ordered_json json = {{"event", collapsed         ? "collapse"
                                           : reasons.empty() ? "healthy"
                                                             : "sign"},
                                 {"batch", batch},
                                 {"reasons", reasons},
                                 {"action", action},
                                 {"effective_classes", effective_classes},
                                 {"entropy", entropy},
                                 {exact ? "displacement" : "displacement_at_most", displacement},
                                 {"drift", drift},
                                 {"update_norm", update_norm},
                                 {"refused", refused},
                                 {"histogram", histogram}};
  if (not_finite > 0) json["not_finite"] = not_finite;
  if (agreement) json["agreement"] = *agreement;
  return json;
}

Guard::Guard(std::string_view text, std::int64_t classes)
    : histogram_(static_cast<std::size_t>(classes), 0), spread_(classes), theirs_(histogram_) {
  const Spec spec = Spec::parse(text);
  if (!parse_value(spec.name, action_)) {
    const auto names = enum_names(GuardAction{});
    fail<ConfigError>("unknown guard \"{}\"{}", spec.name,
                      suggestion(spec.name, {names.begin(), names.end()}));
  }
  options_ = parse_options<GuardOptions>(spec, "guard");
  const auto require = [](bool holds, std::string_view rule) {
    if (!holds) fail<ConfigError>("guard: {}", rule);
  };
  require(options_.horizon >= 1, "horizon must be at least 1");
  require(options_.every >= 1, "every must be at least 1");
  require(options_.diversity >= 0 && options_.diversity <= 1, "diversity must lie in [0, 1]");
  require(options_.entropy >= 0 && options_.entropy <= 1, "entropy must lie in [0, 1]");
  require(options_.displacement > 0, "displacement must be above 0");
}

bool Guard::observe(const BatchHealth& batch) {
  if (action_ == GuardAction::kOff) return false;
  ++batches_;
  const bool alarm = raises_alarm(batch);
  const bool begins = !std::exchange(alarmed_, alarm) && alarm;
  const bool due = batches_ % options_.every == 0;
  take_in(batch);
  if (seen_ < options_.horizon) return begins || (alarm && due);
  if (!reference_) {
    const std::vector<double> shares = shares_of(histogram_, seen_);
    reference_ =
        Reference{shares, effective_number(shares), entropy_sum_ / static_cast<double>(seen_)};
  }
  return begins || due;
}

/// What needs no history. Noted until the next judgement.
bool Guard::raises_alarm(const BatchHealth& batch) {
  not_finite_ += batch.not_finite;
  lost_ = lost_ || batch.lost;
  if (batch.refused < batch.steps) {
    refused_in_a_row_ = 0;
  } else if (batch.broken == 0) {
    refused_in_a_row_ += batch.refused;
  }
  return batch.not_finite > 0 || batch.lost || refused_in_a_row_ >= kRefusedInARow;
}

void Guard::take_in(const BatchHealth& batch) {
  update_norm_ = std::max(update_norm_, batch.update_norm);
  refused_ += batch.refused;
  std::vector<std::int64_t> predictions = batch.predictions;
  spread_.take(predictions);
  std::erase(predictions, kNoClass);
  if (predictions.empty()) return;
  for (const std::int64_t prediction : predictions) ++histogram_.at(prediction);
  seen_ += static_cast<std::int64_t>(predictions.size());
  // Answers that are not finite would poison every later mean.
  const double entropy = std::isfinite(batch.entropy_sum) ? batch.entropy_sum : 0.0;
  entropy_sum_ += entropy;
  recent_.push_back({std::move(predictions), entropy});
  while (seen_ - static_cast<std::int64_t>(recent_.front().predictions.size()) >=
         options_.horizon) {
    for (const std::int64_t prediction : recent_.front().predictions) --histogram_[prediction];
    seen_ -= static_cast<std::int64_t>(recent_.front().predictions.size());
    entropy_sum_ -= recent_.front().entropy_sum;
    recent_.pop_front();
  }
}

/// One class is the least there can be, so shares are taken of what lies above it: otherwise two classes could
/// never become few.
bool Guard::is_narrow() const {
  if (!reference_ || seen_ < options_.horizon) return false;
  return effective_number(shares_of(histogram_, seen_)) - 1 <
         options_.diversity * (reference_->effective_classes - 1);
}

bool Guard::is_in_clumps() const {
  if (spread_.value() > kSpread) return true;
  std::int64_t pairs = 0, equal = 0, before = kNoClass;
  for (const Entry& entry : recent_) {
    for (const std::int64_t answer : entry.predictions) {
      pairs += before != kNoClass;
      equal += answer == before;
      before = answer;
    }
  }
  if (pairs == 0) return false;
  double chance = 0;
  for (const double share : shares_of(histogram_, seen_)) chance += share * share;
  const double alike = static_cast<double>(equal) / static_cast<double>(pairs);
  return alike - chance > kAlike * (1 - chance);
}

bool Guard::asks_source(double displacement) const {
  return is_far(displacement) || is_narrow() ||
         std::has_single_bit(static_cast<std::uint64_t>(judged_ + 1));
}

void Guard::compare(const std::vector<std::int64_t>& ours,
                    const std::vector<std::int64_t>& theirs) {
  Comparison here;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (ours[i] == kNoClass) continue;
    here.ours.push_back(ours[i]);
    here.agreed += ours[i] == theirs[i];
  }
  if (here.ours.empty()) return;
  if (!is_narrow()) {
    for (const std::int64_t each : theirs) {
      if (each != kNoClass) ++theirs_.at(each);
    }
  }
  compared_.push_back(std::move(here));
  std::int64_t all = 0;
  for (const Comparison& each : compared_) all += std::ssize(each.ours);
  while (all - std::ssize(compared_.front().ours) >= std::min(kCompared, options_.horizon)) {
    all -= std::ssize(compared_.front().ours);
    compared_.pop_front();
  }
}

std::optional<double> Guard::agreement() const {
  const auto horizon = static_cast<double>(options_.horizon);
  const auto asked = static_cast<double>(std::reduce(theirs_.begin(), theirs_.end()));
  const double even = horizon / static_cast<double>(theirs_.size());
  std::int64_t agreed = 0, all = 0;
  double chance = 0;
  for (const Comparison& each : compared_) {
    agreed += each.agreed;
    all += std::ssize(each.ours);
    for (const std::int64_t answer : each.ours) {
      chance += (static_cast<double>(theirs_[answer]) + even) / (asked + horizon);
    }
  }
  if (all < std::min(kCompared, options_.horizon)) return std::nullopt;
  chance = std::min(chance / static_cast<double>(all), 0.5);
  return (static_cast<double>(agreed) / static_cast<double>(all) - chance) / (1 - chance);
}

HealthEvent Guard::judge(double displacement, bool exact) {
  HealthEvent event;
  event.batch = batches_;
  event.histogram = histogram_;
  event.displacement = displacement;
  event.exact = exact;
  event.update_norm = std::exchange(update_norm_, 0.0);
  event.refused = std::exchange(refused_, 0);
  event.not_finite = std::exchange(not_finite_, 0);
  if (event.not_finite > 0) event.reasons.push_back("not finite");
  if (std::exchange(lost_, false)) event.reasons.push_back("lost");
  if (refused_in_a_row_ >= kRefusedInARow) event.reasons.push_back("refused");
  const std::vector<double> shares = shares_of(histogram_, seen_);
  event.effective_classes = effective_number(shares);
  event.entropy = entropy_sum_ / static_cast<double>(std::max<std::int64_t>(seen_, 1));
  for (std::size_t c = 0; reference_ && c < shares.size(); ++c) {
    event.drift += std::abs(shares[c] - reference_->shares[c]) / 2;
  }
  // An alarm may come before there are answers enough.
  const bool enough = reference_ && seen_ >= options_.horizon;
  const bool narrow = is_narrow();
  if (asks_source(displacement)) event.agreement = agreement();
  const double least = is_in_clumps() ? kAgreementInClumps : kAgreement;
  const bool strangers = event.agreement && *event.agreement < least;
  if (strangers || std::isnan(displacement)) event.reasons.push_back("disagreement");
  const bool sure = enough && event.entropy < options_.entropy * reference_->entropy;
  event.collapsed = !event.reasons.empty() || (narrow && sure);
  if (narrow) event.reasons.push_back("diversity");
  if (is_far(displacement)) event.reasons.push_back("displacement");
  if (sure) event.reasons.push_back("entropy");
  event.action = "none";
  if (event.collapsed) {
    event.action = format_value(action_);
    if (action_ == GuardAction::kRollback) event.action += " to " + format_value(options_.to);
  }
  ++judged_;
  return event;
}

void Guard::forget(bool all) {
  recent_.clear();
  std::fill(histogram_.begin(), histogram_.end(), 0);
  seen_ = 0;
  entropy_sum_ = 0;
  update_norm_ = 0;
  refused_ = 0;
  refused_in_a_row_ = 0;
  not_finite_ = 0;
  lost_ = false;
  alarmed_ = false;
  compared_.clear();
  if (!all) return;
  std::fill(theirs_.begin(), theirs_.end(), 0);
  spread_.reset();
  batches_ = 0;
  judged_ = 0;
  reference_.reset();
}

nlohmann::json Guard::save() const {
  nlohmann::json state{{"batches", batches_},
                       {"judged", judged_},
                       {"update_norm", update_norm_},
                       {"refused", refused_}};
  for (const Entry& entry : recent_) {
    state["recent"].push_back(
        {{"predictions", entry.predictions}, {"entropy_sum", entry.entropy_sum}});
  }
  state["entropy_sum"] = entropy_sum_;
  state["alarm"] = {{"refused_in_a_row", refused_in_a_row_},
                    {"not_finite", not_finite_},
                    {"lost", lost_},
                    {"alarmed", alarmed_}};
  for (const Comparison& each : compared_) {
    state["compared"].push_back({{"ours", each.ours}, {"agreed", each.agreed}});
  }
  state["theirs"] = theirs_;
  JsonValues values(state["spread"], /*loads=*/false);
  LabelSpread(spread_).remember(values);
  if (reference_) {
    state["reference"] = {{"shares", reference_->shares},
                          {"effective_classes", reference_->effective_classes},
                          {"entropy", reference_->entropy}};
  }
  return state;
}

void Guard::load(const nlohmann::json& state) {
  forget(/*all=*/true);
  batches_ = state.at("batches");
  judged_ = state.value("judged", std::int64_t{0});
  update_norm_ = state.at("update_norm");
  refused_ = state.at("refused");
  const auto& alarm = state.at("alarm");
  refused_in_a_row_ = alarm.at("refused_in_a_row");
  not_finite_ = alarm.at("not_finite");
  lost_ = alarm.at("lost");
  alarmed_ = alarm.at("alarmed");
  const auto require_classes = [](bool holds) {
    if (!holds) fail("the state was saved for another number of classes");
  };
  for (const auto& entry : state.value("recent", nlohmann::json::array())) {
    recent_.push_back({entry.at("predictions"), entry.at("entropy_sum")});
    for (const std::int64_t prediction : recent_.back().predictions) {
      require_classes(prediction >= 0 && prediction < std::ssize(histogram_));
      ++histogram_[prediction];
    }
    seen_ += static_cast<std::int64_t>(recent_.back().predictions.size());
  }
  entropy_sum_ = state.at("entropy_sum");  // not the sum anew: its rounding must not change
  for (const auto& each : state.value("compared", nlohmann::json::array())) {
    compared_.push_back({each.at("ours"), each.at("agreed")});
    for (const std::int64_t answer : compared_.back().ours) {
      require_classes(answer >= 0 && answer < std::ssize(theirs_));
    }
  }
  nlohmann::json spread = state.at("spread");
  JsonValues values(spread, /*loads=*/true);
  spread_.remember(values);
  theirs_ = state.at("theirs").get<std::vector<std::int64_t>>();
  require_classes(theirs_.size() == histogram_.size());
  if (state.contains("reference")) {
    const auto& reference = state["reference"];
    reference_ = Reference{reference.at("shares"), reference.at("effective_classes"),
                           reference.at("entropy")};
    require_classes(reference_->shares.size() == histogram_.size());
  }
}

}  // namespace gala
