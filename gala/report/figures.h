#pragma once
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "gala/report/tables.h"

namespace gala {

/// A run that a chart draws: `run` is its number in the page.
struct ChartRun {
  std::string label;
  std::size_t run = 0;
};

/// One plot: a Vega-Lite specification with its data, or one of the templates with runs whose data
/// the page holds already.
struct Chart {
  std::string label = {};
  nlohmann::ordered_json spec = {};
  std::string name_of_template = {};
  std::vector<ChartRun> runs = {};
  std::optional<double> threshold = {};  ///< for template "cosines"
  std::string threshold_text = {};
  nlohmann::ordered_json colours = {};  ///< scale of the labels' colours
  bool wide = false;

  nlohmann::ordered_json to_json() const;
};

struct Figure {
  std::string id, title, caption;
  std::vector<Chart> charts;
};

/// The figures that the records allow, in the order of the page.
std::vector<Figure> store_figures(const std::vector<Record>& records,
                                  const std::vector<TableSet>& tables);

/// Level curves of Eq. 8 for small and large displacement, and the two-layer example.
Figure criterion_figure();
/// cos α of Eq. 8 from T = |TD|, u = |u| and the angle β between them, in radians.
double criterion(double displacement, double update, double angle);

/// The specifications that charts of runs share, by name: time, raster, counts, displacement, gap,
/// cosines, cosine_map. Each takes its values from the data set "main".
nlohmann::ordered_json chart_templates();

/// A colour-blind safe scale for methods: the usual ones always have the same colour.
nlohmann::ordered_json method_colours(const std::vector<std::string>& methods);

/// What every specification begins with.
nlohmann::ordered_json chart_base(const std::string& description, int height);

// Single figures; without charts where the records have nothing for them.
Figure block_figure(const std::vector<Record>& records);
Figure rate_figure(const std::vector<Record>& records);
Figure forgetting_figure(const std::vector<TableSet>& tables);
Figure rotation_figure(const std::vector<Record>& records);
Figure cost_figure(const std::vector<TableSet>& tables);
// Of tables whose rows are whole methods.
Figure tradeoff_figure(const std::vector<TableSet>& tables);
Figure selector_figure(const std::vector<TableSet>& tables);
/// Of all runs in tables whose stream recurs.
Figure visits_figure(const std::vector<TableSet>& tables);

/// A run that stands in the first variant of a table, with the names it has there.
struct ShownRun {
  std::string table, data, loss, method;
  std::string name;  ///< the method's, with its group where it has one
  const Record* record = nullptr;
  std::string group = {};  ///< of a table of methods: the rows that are compared with this one
};
/// The first run of every cell that has one; of the paper's Tables 1 to 3, and where these are empty
/// of all others.
std::vector<ShownRun> shown_runs(const std::vector<TableSet>& tables);
/// One chart for each stream and loss: the error of all methods over time.
Figure time_figure(const std::vector<Record>& records, const std::vector<ShownRun>& shown);

}  // namespace gala
