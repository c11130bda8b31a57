#include "gala/step/rotation.h"

#include <fmt/format.h>

#include <cmath>

namespace gala {

std::string Rotation::repeats_text() const {
  const auto share = [&](double count) { return 100 * count / static_cast<double>(choices); };
  if (choices == 0) return "no choices";
  return fmt::format("{} of {} choices ({:.1f} %; by chance {:.1f} %)", repeats, choices,
                     share(static_cast<double>(repeats)), share(by_chance));
}

void RotationCount::take(const StepRecord& step) {
  if (step.window_step == 1) open_window();
  if (step.refused) return;
  const std::vector<std::size_t> moved = step.selected();
  if (moved.size() == 1) choose(static_cast<std::int64_t>(moved.front()));
}

void RotationCount::open_window() {
  seen_.clear();
  in_window_ = 0;
}

void RotationCount::choose(std::int64_t layer) {
  ++total_.choices;
  total_.repeats += !seen_.insert(layer).second;
  // A draw misses one earlier draw with probability 1 - 1/n, and k of them with its k-th power.
  const double missed = 1 - 1 / static_cast<double>(layers_);
  total_.by_chance += 1 - std::pow(missed, static_cast<double>(in_window_++));
}

nlohmann::json RotationCount::save() const {
  return {{"choices", total_.choices},
          {"repeats", total_.repeats},
          {"by_chance", total_.by_chance},
          {"seen", seen_},
          {"in_window", in_window_}};
}

void RotationCount::load(const nlohmann::json& saved) {
  total_ = {saved.at("choices"), saved.at("repeats"), saved.at("by_chance")};
  seen_ = saved.at("seen").get<std::set<std::int64_t>>();
  in_window_ = saved.at("in_window");
}

}  // namespace gala
