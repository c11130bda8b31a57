#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "gala/report/figures.h"

namespace gala {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kDegree = std::numbers::pi / 180;
constexpr double kLevels[] = {-0.5, 0, 0.25, 0.5, 0.75, 0.9, 0.99};

/// A grid of values over angle (degrees) and update size.
struct Grid {
  static constexpr int kSteps = 60;
  double displacement, largest;
  double angle(int i) const { return 180.0 * i / kSteps; }
  double update(int j) const { return largest * (0.02 + 0.98 * j / kSteps); }
  double value(int i, int j) const {
    return criterion(displacement, update(j), angle(i) * kDegree);
  }
};

/// Where a level cuts the sides of a cell, as pieces of its curve (marching squares).
void add_pieces(const Grid& grid, int i, int j, double level, Json& values) {
  const std::pair<int, int> corners[] = {{i, j}, {i + 1, j}, {i + 1, j + 1}, {i, j + 1}};
  std::vector<std::pair<double, double>> cuts;
  for (int side = 0; side < 4; ++side) {
    const auto [ai, aj] = corners[side];
    const auto [bi, bj] = corners[(side + 1) % 4];
    const double a = grid.value(ai, aj) - level, b = grid.value(bi, bj) - level;
    if ((a < 0) == (b < 0)) continue;
    const double share = a / (a - b);
    cuts.emplace_back(grid.angle(ai) + share * (grid.angle(bi) - grid.angle(ai)),
                      grid.update(aj) + share * (grid.update(bj) - grid.update(aj)));
  }
  const auto short_number = [](double x) { return std::round(x * 1e4) / 1e4; };
  for (std::size_t k = 0; k + 1 < cuts.size(); k += 2) {
    values.push_back({{"x", short_number(cuts[k].first)},
                      {"y", short_number(cuts[k].second)},
                      {"x2", short_number(cuts[k + 1].first)},
                      {"y2", short_number(cuts[k + 1].second)},
                      {"level", fmt::format("{}", level)}});
  }
}

Chart level_chart(const std::string& label, double displacement, double largest) {
  const Grid grid{displacement, largest};
  Json values = Json::array();
  for (const double level : kLevels) {
    for (int i = 0; i < Grid::kSteps; ++i) {
      for (int j = 0; j < Grid::kSteps; ++j) add_pieces(grid, i, j, level, values);
    }
  }
  Json spec = chart_base("Level curves of the criterion, " + label, 300);
  spec["data"] = {{"values", values}};
  spec["mark"] = {{"type", "rule"}, {"strokeWidth", 2}};
  Json names = Json::array();
  for (const double level : kLevels) names.push_back(fmt::format("{}", level));
  spec["encoding"] = {
      {"x",
       {{"field", "x"},
        {"type", "quantitative"},
        {"title", "angle β between update and displacement, degrees"},
        {"scale", {{"domain", {0, 180}}}},
        {"axis", {{"values", {0, 30, 60, 90, 120, 150, 180}}}}}},
      {"x2", {{"field", "x2"}}},
      {"y", {{"field", "y"}, {"type", "quantitative"}, {"title", "size of the update |u|"}}},
      {"y2", {{"field", "y2"}}},
      {"color",
       {{"field", "level"},
        {"type", "ordinal"},
        {"title", "cos α"},
        {"sort", nullptr},
        {"scale",
         {{"domain", names},
          {"range",
           {"#a8341f", "#d9542b", "#e0992a", "#9aa02c", "#3f9f6b", "#0f8a80", "#2f6fb5"}}}}}}};
  return {.label = label, .spec = std::move(spec)};
}

struct Layer {
  const char* name;
  double update, degrees;
};
constexpr Layer kLayers[] = {{"layer 1: |u| = 1, β = 30°", 1, 30},
                             {"layer 2: |u| = 3, β = 60°", 3, 60}};

Chart example_chart() {
  Json values = Json::array(), points = Json::array();
  for (const Layer& layer : kLayers) {
    constexpr int kPoints = 80;
    for (int i = 0; i <= kPoints; ++i) {
      const double displacement = 0.05 * std::pow(1000.0, i / static_cast<double>(kPoints));
      values.push_back({{"t", displacement},
                        {"cosine", criterion(displacement, layer.update, layer.degrees * kDegree)},
                        {"layer", layer.name}});
    }
    for (const double displacement : {0.5, 10.0}) {
      const double cosine = criterion(displacement, layer.update, layer.degrees * kDegree);
      points.push_back({{"t", displacement},
                        {"cosine", cosine},
                        {"layer", layer.name},
                        {"number", layer.degrees < 45 ? 1 : 2},
                        {"text", fmt::format("{:.3f}", cosine)}});
    }
  }
  Json spec = chart_base("cos α of two layers against the displacement", 280);
  const Json x = {{"field", "t"},
                  {"type", "quantitative"},
                  {"title", "displacement T = |TD| of both layers"},
                  {"scale", {{"type", "log"}, {"nice", false}}},
                  {"axis", {{"format", "~g"}, {"tickCount", 4}, {"grid", false}}}};
  const Json y = {{"field", "cosine"},
                  {"type", "quantitative"},
                  {"title", "cos α"},
                  {"scale", {{"domain", {0.5, 1.05}}}}};
  const Json colour = {
      {"field", "layer"},
      {"type", "nominal"},
      {"title", nullptr},
      {"legend", {{"columns", 1}}},
      {"scale",
       {{"domain", {kLayers[0].name, kLayers[1].name}}, {"range", {"#0f8a80", "#d9542b"}}}}};
  spec["layer"] = Json::array();
  spec["layer"].push_back({{"data", {{"values", values}}},
                           {"mark", {{"type", "line"}, {"strokeWidth", 2}}},
                           {"encoding", {{"x", x}, {"y", y}, {"color", colour}}}});
  spec["layer"].push_back({{"data", {{"values", points}}},
                           {"mark", {{"type", "point"}, {"filled", true}, {"size", 60}}},
                           {"encoding", {{"x", x}, {"y", y}, {"color", colour}}}});
  // The labels of one layer stand below its points, those of the other above.
  const std::vector<std::pair<int, int>> places = {{1, 14}, {2, -12}};
  for (const auto& [number, offset] : places) {
    spec["layer"].push_back(
        {{"data", {{"values", points}}},
         {"transform", {{{"filter", {{"field", "number"}, {"equal", number}}}}}},
         {"mark", {{"type", "text"}, {"style", "cell-label"}, {"dy", offset}}},
         {"encoding", {{"x", x}, {"y", y}, {"text", {{"field", "text"}}}}}});
  }
  return {.label = "Two layers: which one is chosen", .spec = std::move(spec)};
}

}  // namespace

double criterion(double displacement, double update, double angle) {
  const double along = displacement + update * std::cos(angle);
  const double across = update * std::sin(angle);
  return (displacement * std::cos(angle) + update) / std::hypot(along, across);
}

Figure criterion_figure() {
  return {"criterion",
          "The criterion: alignment against size",
          "cos α of Eq. 8, drawn from the formula. Where the displacement is large, alignment "
          "decides; where it is small, a large update scores high whatever its direction. In the "
          "two-layer example a large displacement chooses layer 1, the better aligned, a small one "
          "layer 2, the larger (the paper's captions say the reverse; its text and its formula say "
          "this).",
          {level_chart("Large displacement, T = 10", 10, 3),
           level_chart("Small displacement, T = 0.5", 0.5, 3), example_chart()}};
}

}  // namespace gala
