#include <fmt/format.h>

#include <cmath>

#include "gala/report/report.h"

namespace gala {
namespace {

using Json = nlohmann::ordered_json;

/// Loss and gradient norm of every step.
Chart loss_chart(const AdaptTrace& trace, const std::string& label) {
  constexpr std::size_t kMost = 1000;
  const std::size_t every = std::max<std::size_t>(1, (trace.losses.size() + kMost - 1) / kMost);
  Json values = Json::array();
  for (std::size_t i = 0; i < trace.losses.size(); i += every) {
    const std::vector<std::pair<const char*, double>> lines = {
        {"loss", trace.losses[i]}, {"gradient norm", trace.gradient_norms[i]}};
    for (const auto& [what, value] : lines) {
      if (std::isfinite(value))
        values.push_back({{"step", i + 1}, {"value", value}, {"what", what}});
    }
  }
  Json spec = chart_base("Loss and gradient norm over the steps", 220);
  spec["data"] = {{"values", values}};
  spec["mark"] = {{"type", "line"}, {"strokeWidth", 1.4}};
  spec["encoding"] = {
      {"x",
       {{"field", "step"},
        {"type", "quantitative"},
        {"scale", {{"nice", false}, {"zero", false}}},
        {"axis", {{"grid", false}, {"tickMinStep", 1}}}}},
      {"y", {{"field", "value"}, {"type", "quantitative"}, {"title", nullptr}}},
      {"color",
       {{"field", "what"},
        {"type", "nominal"},
        {"title", nullptr},
        {"scale", {{"domain", {"loss", "gradient norm"}}, {"range", {"#0f8a80", "#e0992a"}}}}}}};
  return {.label = label, .spec = std::move(spec), .wide = true};
}

}  // namespace

std::vector<Figure> trace_figures(const std::vector<AdaptTrace>& traces) {
  std::vector<Figure> figures = {
      {"time", "Error over the stream", "Where the trace knows the right answers.", {}},
      {"raster",
       "Which layer moved when",
       "Steps from left to right, layers from input to output. Orange: several layers at once (the "
       "step that opens a window); grey: none passed; red: refused.",
       {}},
      {"counts", "How often each layer moved", "Steps at which it moved by its whole update.", {}},
      {"cosines",
       "Cosines and threshold",
       "1 − cos α over the steps: the best layer (line), the median (thin), all layers (band). The "
       "dashed line is the threshold that gala has by default; a trace does not tell the one it "
       "was made with.",
       {}},
      {"gap",
       "How clear was the choice?",
       "Largest cosine minus second largest, over the steps that do not open a window.",
       {}},
      {"displacement",
       "Where the updates lead",
       "Net displacement within windows against the length of the path there, by layer, summed "
       "over "
       "windows. On the dotted line a layer went straight.",
       {}},
      {"loss", "Loss", "What was minimised, and the norm of its gradient.", {}}};
  constexpr double kDefaultThreshold = 0.75;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    const AdaptTrace& trace = traces[i];
    const std::string& label = trace.run.labels.row;
    const ChartRun run{label, i};
    const auto add = [&](std::size_t figure, const char* name, bool wide) {
      figures[figure].charts.push_back(
          {.label = label, .name_of_template = name, .runs = {run}, .wide = wide});
    };
    if (!trace.run.over_time.images.empty()) add(0, "time", true);
    add(1, "raster", true);
    add(2, "counts", false);
    if (!trace.cosines.steps.empty()) {
      add(3, "cosines", true);
      figures[3].charts.back().threshold = kDefaultThreshold;
      figures[3].charts.back().threshold_text = "threshold 0.75 (default)";
      add(3, "cosine_map", true);
    }
    if (trace.run.gap.steps > 0) {
      add(4, "gap", false);
      figures[4].charts.back().colours = {{"domain", {label}}, {"range", {"#0f8a80"}}};
    }
    add(5, "displacement", false);
    figures[6].charts.push_back(loss_chart(trace, label));
  }
  std::erase_if(figures, [](const Figure& figure) { return figure.charts.empty(); });
  return figures;
}

Table trace_table(const AdaptTrace& trace) {
  Table table;
  table.id = "trace";
  table.title = "Layers";
  table.caption =
      "Steps at which a layer moved by its whole update, and how far it went: path is the sum of "
      "its updates, net the distance they made, both within windows and summed over them.";
  table.heads = {"Layer"};
  table.columns = {{.name = "Chosen", .digits = 0, .unit = "steps", .directed = false},
                   {.name = "Share", .digits = 1, .directed = false},
                   {.name = "Path", .digits = 5, .unit = "", .directed = false},
                   {.name = "Net", .digits = 5, .unit = "", .directed = false}};
  for (const LayerUse& layer : trace.run.layers) {
    Row row{{layer.name}, {}, false};
    const double steps = static_cast<double>(std::max<std::int64_t>(1, trace.run.steps));
    for (const double value :
         {static_cast<double>(layer.chosen), 100 * static_cast<double>(layer.chosen) / steps,
          layer.path, layer.net}) {
      row.cells.push_back({.state = Cell::State::kValue, .value = value});
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace gala
