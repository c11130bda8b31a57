// The ranges of options: every part goes by the list, and says what the list says.
#include "gala/method/ranges.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "gala/loss/loss.h"
#include "gala/loss/ranges.h"
#include "gala/loss/sample_rule.h"
#include "gala/method/after_step.h"
#include "gala/method/drift.h"
#include "gala/method/penalty.h"
#include "gala/method/perturbation.h"
#include "gala/method/readout.h"
#include "gala/method/reset_rule.h"
#include "gala/method/store.h"
#include "gala/method/teacher.h"
#include "gala/view/ranges.h"
#include "gala/view/view.h"

namespace gala {
namespace {

/// Makes the part that a text names, by the word for its kind.
using Makers = std::map<std::string_view, std::function<void(const std::string&)>>;
Makers makers() {
  return {
      {Loss::kKind, [](const std::string& text) { make_loss(text); }},
      {SampleRule::kKind, [](const std::string& text) { make_sample_rule(Spec::parse(text)); }},
      {AfterStep::kKind, [](const std::string& text) { make_after_step(Spec::parse(text)); }},
      {Drift::kKind, [](const std::string& text) { make_drift(Spec::parse(text)); }},
      {Penalty::kKind, [](const std::string& text) { make_penalty(Spec::parse(text)); }},
      {Perturbation::kKind, [](const std::string& text) { make_perturbation(Spec::parse(text)); }},
      {Readout::kKind, [](const std::string& text) { make_readout(Spec::parse(text)); }},
      {ResetRule::kKind, [](const std::string& text) { make_reset_rule(Spec::parse(text)); }},
      {Store::kKind, [](const std::string& text) { make_store(Spec::parse(text)); }},
      {Teacher::kKind, [](const std::string& text) { make_teacher(Spec::parse(text)); }},
      {View::kKind, [](const std::string& text) { make_view(Spec::parse(text)); }},
  };
}

std::vector<OptionRange> ranges_of_parts() {
  std::vector<OptionRange> all;
  for (const auto ranges : {loss_ranges(), method_ranges(), view_ranges()}) {
    for (const OptionRange& each : ranges) {
      if (!each.part.empty()) all.push_back(each);
    }
  }
  return all;
}

/// What is said of a value; empty where it is taken.
std::string said_of(const OptionRange& each, double value) {
  const std::size_t space = each.part.rfind(' ');
  try {
    makers().at(each.part.substr(0, space))(
        fmt::format("{}:{}={}", each.part.substr(space + 1), each.option, value));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Ranges, HoldForEveryPart) {
  for (const OptionRange& each : ranges_of_parts()) {
    const NumberRange& range = each.range;
    const auto refuses = [&](double value) {
      EXPECT_EQ(said_of(each, value),
                fmt::format("{}: {} {}, not {}", each.part, each.option, range.words, value));
    };
    const auto takes = [&](double value) { EXPECT_EQ(said_of(each, value), "") << value; };
    ASSERT_TRUE(std::isfinite(range.low)) << each.part << ' ' << each.option;
    refuses(range.low - 1);
    range.low_is_out ? refuses(range.low) : takes(range.low);
    if (!std::isfinite(range.high)) {
      takes(range.low + 1e4);
      continue;
    }
    refuses(range.high + 1);
    range.high_is_out ? refuses(range.high) : takes(range.high);
    if (range.low_is_out || range.high_is_out) takes((range.low + range.high) / 2);
  }
}

TEST(Ranges, SayWhatTheirNumbersAre) {
  for (const OptionRange& each : ranges_of_parts()) {
    const NumberRange& range = each.range;
    const bool open = range.low_is_out, open_above = range.high_is_out;
    std::vector<std::string> words;
    if (std::isfinite(range.high)) {
      words = {fmt::format("must lie in {}{}, {}{}", open ? '(' : '[', range.low, range.high,
                           open_above ? ')' : ']'),
               fmt::format("must lie in {} .. {}", range.low, range.high)};
    } else {
      words = {fmt::format("must be {} {}", open ? "above" : "at least", range.low)};
      if (!open && range.low == 0) words.emplace_back("must not be negative");
    }
    EXPECT_NE(std::find(words.begin(), words.end(), range.words), words.end())
        << each.part << ' ' << each.option << ' ' << range.words;
  }
}

TEST(Ranges, RefuseWhatIsNoNumber) {
  EXPECT_FALSE(kShare.holds(std::nan("")));
  EXPECT_FALSE(kAboveZero.holds(std::nan("")));
  EXPECT_FALSE(kNotNegative.holds(std::nan("")));
}

}  // namespace
}  // namespace gala
