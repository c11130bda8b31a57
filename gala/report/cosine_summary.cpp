#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "gala/base/error.h"
#include "gala/base/json.h"
#include "gala/base/words.h"
#include "gala/protocol/metrics.h"
#include "gala/protocol/trace.h"
#include "gala/report/traces.h"

namespace gala {
namespace {

constexpr double kSmallest = 1e-12;  // a logarithmic axis has no zero
constexpr std::size_t kMostSteps = 800;
constexpr std::size_t kMostStretches = 100;

/// Three digits are enough to draw.
double rounded(double value) {
  if (!std::isfinite(value) || value == 0) return value;
  const double power = std::pow(10.0, 2 - std::floor(std::log10(std::abs(value))));
  return std::round(value * power) / power;
}

void add_step(CosineSummary& summary, std::int64_t step, std::vector<double> distances) {
  std::erase_if(distances, [](double distance) { return !std::isfinite(distance); });
  std::sort(distances.begin(), distances.end());
  // Where a window opens nothing has moved yet: every cosine is 1, and there is nothing to show.
  if (distances.empty() || distances.back() <= kSmallest) return;
  const auto at = [&](std::size_t place) {
    return rounded(std::max(kSmallest, distances[std::min(place, distances.size() - 1)]));
  };
  summary.steps.push_back(step);
  summary.best.push_back(at(0));
  summary.second.push_back(at(1));
  summary.median.push_back(at(distances.size() / 2));
  summary.worst.push_back(at(distances.size() - 1));
}

}  // namespace

CosineSummary summarise_cosines(const std::vector<std::int64_t>& steps,
                                const std::vector<std::vector<double>>& distances) {
  CosineSummary summary;
  const std::size_t count = steps.size();
  const std::size_t every = std::max<std::size_t>(1, (count + kMostSteps - 1) / kMostSteps);
  for (std::size_t i = 0; i < count; i += every) add_step(summary, steps[i], distances[i]);

  std::size_t layers = 0;
  for (const auto& step : distances) layers = std::max(layers, step.size());
  const std::size_t stretch =
      std::max<std::size_t>(1, (count + kMostStretches - 1) / kMostStretches);
  for (std::size_t begin = 0; begin < count; begin += stretch) {
    const std::size_t end = std::min(begin + stretch, count);
    summary.edges.push_back(steps[begin]);
    std::vector<double>& column = summary.map.emplace_back();
    for (std::size_t layer = 0; layer < layers; ++layer) {
      std::vector<double> values;
      for (std::size_t i = begin; i < end; ++i) {
        if (layer < distances[i].size() && std::isfinite(distances[i][layer])) {
          values.push_back(distances[i][layer]);
        }
      }
      column.push_back(rounded(mean(values)));
    }
  }
  if (count > 0) summary.edges.push_back(steps.back() + 1);
  return summary;
}

CosineSummary read_store_trace(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream packed;
  if (!file || !(packed << file.rdbuf())) throw FormatError(path.string(), "cannot be read");
  std::vector<std::int64_t> steps;
  std::vector<std::vector<double>> distances;
  try {
    std::istringstream lines(gunzip(packed.str()));
    std::string line;
    bool heading = true;
    while (std::getline(lines, line)) {
      const auto json = parse_json(line);
      if (heading) {
        check_schema(json);
        heading = false;
        continue;
      }
      steps.push_back(count_from(json.at("step")));
      std::vector<double>& values = distances.emplace_back();
      for (const auto& value : json.at("distance")) {
        values.push_back(value.is_number() ? value.get<double>() : std::nan(""));
      }
    }
  } catch (const std::exception& error) {
    throw FormatError(path.string(), fmt::format("is not a trace: {}", in_words(error)));
  }
  return summarise_cosines(steps, distances);
}

nlohmann::ordered_json CosineSummary::to_json() const {
  nlohmann::ordered_json json = {{"steps", steps},   {"best", best},   {"second", second},
                                 {"median", median}, {"worst", worst}, {"edges", edges}};
  // The library writes null for numbers that are not finite.
  json["map"] = map;
  return json;
}

}  // namespace gala
