#include "gala/report/heat_map.h"

#include <fmt/format.h>

#include <algorithm>

namespace gala {

nlohmann::ordered_json heat_map(const HeatMap& map, const std::string& description) {
  using Json = nlohmann::ordered_json;
  Json values = Json::array();
  for (const HeatMap::Cell& cell : map.cells) {
    values.push_back({{map.row_name, cell.row},
                      {map.column_name, cell.column},
                      {map.value_name, cell.value},
                      {"text", cell.text},
                      {"best", cell.best}});
  }
  Json spec =
      chart_base(description, static_cast<int>(std::max<std::size_t>(2, map.rows.size())) * 30);
  spec["data"] = {{"values", values}};
  const Json x = {
      {"field", map.column_name},
      {"type", "nominal"},
      {"title", nullptr},
      {"sort", map.columns},
      {"axis", {{"orient", "top"}, {"labelAngle", 0}, {"domain", false}, {"ticks", false}}}};
  const Json y = {{"field", map.row_name},
                  {"type", "nominal"},
                  {"title", nullptr},
                  {"sort", map.rows},
                  {"axis", {{"domain", false}, {"ticks", false}}}};
  spec["encoding"] = {{"x", x}, {"y", y}};
  spec["layer"] = Json::array();
  spec["layer"].push_back(
      {{"mark", {{"type", "rect"}, {"tooltip", true}}},
       {"encoding",
        {{"color",
          {{"field", map.value_name},
           {"type", "quantitative"},
           {"title", map.legend},
           {"scale",
            {{"domain", {-map.limit, map.limit}}, {"range", "diverging"}, {"clamp", true}}},
           {"legend", {{"orient", "bottom"}, {"gradientLength", 160}, {"titleLimit", 300}}}}}}}});
  spec["layer"].push_back({{"transform", {{{"filter", {{"field", "best"}, {"equal", true}}}}}},
                           {"mark", {{"type", "rect"}, {"style", "box"}, {"filled", false}}}});
  spec["layer"].push_back({{"mark", {{"type", "text"}, {"style", "cell-label"}}},
                           {"encoding", {{"text", {{"field", "text"}}}}}});
  return spec;
}

}  // namespace gala
