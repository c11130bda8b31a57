#include "gala/report/figures.h"

namespace gala {
namespace {

using Json = nlohmann::ordered_json;

Json quantity(const char* field, const char* title) {
  return {{"field", field}, {"type", "quantitative"}, {"title", title}};
}

Json layer_axis() {
  // The page sets the domain: all layers in forward order.
  return {{"field", "layer"},
          {"type", "nominal"},
          {"title", nullptr},
          {"axis", {{"labelFontSize", 9}, {"labelLimit", 130}, {"grid", false}}}};
}

Json block_colour() {
  return {{"field", "block"},
          {"type", "nominal"},
          {"title", nullptr},
          {"sort", nullptr},
          {"legend", {{"symbolType", "square"}}}};
}

Json time_template() {
  Json spec = chart_base("Error over the stream, with the borders of its domains", 260);
  spec["layer"] = Json::array();
  Json x = quantity("batch", "batch");
  x["scale"] = {{"nice", false}, {"zero", false}};
  x["axis"] = {{"grid", false}, {"tickMinStep", 1}};
  Json y = quantity("error", "error in %");
  spec["layer"].push_back(
      {{"data", {{"name", "main"}}},
       {"mark", {{"type", "line"}, {"strokeWidth", 1.8}, {"interpolate", "monotone"}}},
       {"encoding",
        {{"x", x},
         {"y", y},
         {"color",
          {{"field", "label"},
           {"type", "nominal"},
           {"title", nullptr},
           {"sort", nullptr},
           {"legend", {{"orient", "bottom"}}}}}}}});
  spec["layer"].push_back({{"data", {{"name", "borders"}}},
                           {"mark", {{"type", "rule"}, {"style", "border"}}},
                           {"encoding", {{"x", quantity("start", "batch")}}}});
  spec["layer"].push_back({{"data", {{"name", "borders"}}},
                           {"mark",
                            {{"type", "text"},
                             {"style", "border-label"},
                             {"angle", 325},
                             {"align", "left"},
                             {"baseline", "bottom"},
                             {"limit", 110},
                             {"clip", false}}},
                           {"encoding",
                            {{"x", quantity("middle", "batch")},
                             {"y", {{"value", -6}}},
                             {"text", {{"field", "name"}}}}}});
  return spec;
}

Json raster_template() {
  Json spec = chart_base("Which layer moved at which step", 300);
  spec["data"] = {{"name", "main"}};
  Json x = quantity("from", "step");
  x["scale"] = {{"nice", false}, {"zero", false}};
  x["axis"] = {{"grid", false}, {"tickMinStep", 1}};
  const Json x2 = {{"field", "to"}};
  spec["layer"] = Json::array();
  const std::vector<std::pair<const char*, const char*>> bands = {
      {"several layers", "several"}, {"refused", "refused"}, {"none passed", "skipped"}};
  for (const auto& [kind, style] : bands) {
    spec["layer"].push_back({{"transform", {{{"filter", {{"field", "kind"}, {"equal", kind}}}}}},
                             {"mark", {{"type", "rect"}, {"style", style}, {"tooltip", kind}}},
                             {"encoding", {{"x", x}, {"x2", x2}}}});
  }
  spec["layer"].push_back(
      {{"transform", {{{"filter", {{"field", "kind"}, {"equal", "chosen"}}}}}},
       {"mark", {{"type", "rect"}, {"style", "chosen"}, {"minBandSize", 3}}},
       {"encoding",
        {{"x", x},
         {"x2", x2},
         {"y", layer_axis()},
         {"tooltip", {{{"field", "layer"}}, {{"field", "steps"}, {"title", "steps in a row"}}}}}}});
  return spec;
}

Json counts_template() {
  Json spec = chart_base("How often each layer was chosen", 300);
  spec["data"] = {{"name", "main"}};
  spec["mark"] = {{"type", "bar"}, {"tooltip", true}};
  Json x = quantity("chosen", "steps");
  x["axis"] = {{"tickMinStep", 1}};
  spec["encoding"] = {{"y", layer_axis()}, {"x", x}, {"color", block_colour()}};
  return spec;
}

Json displacement_template() {
  Json spec = chart_base("Net displacement of each layer against the length of its path", 280);
  spec["data"] = {{"name", "main"}};
  const Json log = {{"type", "log"}, {"nice", false}, {"padding", 8}};
  Json x = quantity("path", "path: sum of update norms");
  Json y = quantity("net", "net displacement");
  x["scale"] = y["scale"] = log;
  x["axis"] =
      y["axis"] = {{"format", "~e"}, {"tickCount", 4}, {"grid", false}, {"labelOverlap", true}};
  spec["layer"] = Json::array();
  spec["layer"].push_back(
      {{"mark", {{"type", "point"}, {"filled", true}, {"size", 42}, {"opacity", 0.85}}},
       {"encoding",
        {{"x", x},
         {"y", y},
         {"color", block_colour()},
         {"tooltip",
          {{{"field", "layer"}},
           {{"field", "path"}, {"format", ".3g"}},
           {{"field", "net"}, {"format", ".3g"}}}}}}});
  Json from = quantity("low", "path: sum of update norms"),
       to = quantity("low", "net displacement");
  from["scale"] = to["scale"] = log;
  spec["layer"].push_back(
      {{"transform",
        {{{"aggregate",
           {{{"op", "max"}, {"field", "path"}, {"as", "top"}},
            {{"op", "min"}, {"field", "net"}, {"as", "low"}}}}}}},
       {"mark", {{"type", "rule"}, {"style", "diagonal"}}},
       {"encoding",
        {{"x", from}, {"x2", {{"field", "top"}}}, {"y", to}, {"y2", {{"field", "top"}}}}}});
  return spec;
}

Json gap_template() {
  Json spec = chart_base("Distribution of the gap between the two best cosines", 240);
  spec["data"] = {{"name", "main"}};
  spec["mark"] = {{"type", "bar"}};
  spec["encoding"] = {
      {"x",
       {{"field", "left"},
        {"type", "quantitative"},
        {"bin", {{"binned", true}, {"step", 1}}},
        {"title", "gap, powers of ten"},
        {"scale", {{"domain", {-18, 0}}}},
        {"axis",
         {{"labelExpr", "datum.value == -18 ? 'tie' : '1e' + datum.value"},
          {"values", {-18, -15, -12, -9, -6, -3, 0}},
          {"grid", false}}}}},
      {"x2", {{"field", "right"}}},
      {"y",
       {{"field", "share"},
        {"type", "quantitative"},
        {"title", "% of the steps"},
        {"stack", nullptr}}},
      {"color", {{"field", "label"}, {"type", "nominal"}, {"title", nullptr}, {"sort", nullptr}}},
      {"tooltip",
       {{{"field", "label"}}, {{"field", "count"}}, {{"field", "share"}, {"format", ".1f"}}}}};
  return spec;
}

Json cosines_template() {
  Json spec = chart_base("Cosines of the layers over the steps, and the threshold", 260);
  spec["data"] = {{"name", "main"}};
  Json x = quantity("step", "step");
  x["scale"] = {{"nice", false}, {"zero", false}};
  x["axis"] = {{"grid", false}, {"tickMinStep", 1}};
  const auto y = [](const char* field) {
    Json axis = quantity(field, "1 − cos α (up is better)");
    axis["scale"] = {{"type", "log"}, {"reverse", true}, {"nice", false}};
    axis["axis"] = {{"format", "~e"}, {"tickCount", 5}, {"grid", false}, {"labelOverlap", true}};
    return axis;
  };
  spec["layer"] = Json::array();
  spec["layer"].push_back(
      {{"mark", {{"type", "area"}, {"style", "band"}}},
       {"encoding", {{"x", x}, {"y", y("best")}, {"y2", {{"field", "worst"}}}}}});
  spec["layer"].push_back({{"mark", {{"type", "line"}, {"style", "soft"}}},
                           {"encoding", {{"x", x}, {"y", y("median")}}}});
  spec["layer"].push_back({{"mark", {{"type", "line"}, {"style", "main"}}},
                           {"encoding", {{"x", x}, {"y", y("best")}}}});
  spec["layer"].push_back({{"data", {{"name", "threshold"}}},
                           {"mark", {{"type", "rule"}, {"style", "threshold"}}},
                           {"encoding", {{"y", y("distance")}}}});
  spec["layer"].push_back(
      {{"data", {{"name", "threshold"}}},
       {"mark",
        {{"type", "text"},
         {"style", "threshold-label"},
         {"align", "right"},
         {"baseline", "bottom"},
         {"dy", -4}}},
       {"encoding",
        {{"y", y("distance")}, {"x", {{"value", "width"}}}, {"text", {{"field", "text"}}}}}});
  return spec;
}

Json cosine_map_template() {
  Json spec = chart_base("Cosine of every layer over the steps", 300);
  spec["data"] = {{"name", "main"}};
  spec["mark"] = {{"type", "rect"}};
  Json x = quantity("from", "step");
  x["scale"] = {{"nice", false}, {"zero", false}};
  x["axis"] = {{"grid", false}, {"tickMinStep", 1}};
  Json colour = quantity("cosine", "cos α");
  colour["scale"] = {{"range", "ramp"}};
  spec["encoding"] = {
      {"x", x},
      {"x2", {{"field", "to"}}},
      {"y", layer_axis()},
      {"color", colour},
      {"tooltip", {{{"field", "layer"}}, {{"field", "cosine"}, {"format", ".4f"}}}}};
  return spec;
}

}  // namespace

nlohmann::ordered_json chart_base(const std::string& description, int height) {
  return {{"description", description},
          {"width", "container"},
          {"height", height},
          {"autosize", {{"type", "fit-x"}, {"contains", "padding"}}}};
}

nlohmann::ordered_json chart_templates() {
  return {{"time", time_template()},
          {"raster", raster_template()},
          {"counts", counts_template()},
          {"displacement", displacement_template()},
          {"gap", gap_template()},
          {"cosines", cosines_template()},
          {"cosine_map", cosine_map_template()}};
}

nlohmann::ordered_json Chart::to_json() const {
  Json json = {{"label", label}, {"wide", wide}};
  if (name_of_template.empty()) {
    json["spec"] = spec;
    return json;
  }
  json["template"] = name_of_template;
  json["runs"] = Json::array();
  for (const ChartRun& run : runs) json["runs"].push_back({{"label", run.label}, {"run", run.run}});
  if (threshold) {
    json["threshold"] = *threshold;
    json["threshold_text"] = threshold_text;
  }
  if (!colours.is_null()) json["colours"] = colours;
  return json;
}

}  // namespace gala
