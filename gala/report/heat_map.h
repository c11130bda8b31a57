#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gala/report/figures.h"

namespace gala {

/// Numbers in rows and columns, coloured by how far above (green) or below (red) zero they are.
struct HeatMap {
  struct Cell {
    std::string row, column;
    double value = 0;
    std::string text;
    bool best = false;  ///< has a box
  };
  // What the pointer calls them.
  std::string row_name, column_name, value_name;
  std::string legend;
  std::vector<std::string> rows = {}, columns = {};  ///< in order
  std::vector<Cell> cells = {};
  double limit = 1;  ///< where colours end
};

/// Its Vega-Lite specification.
nlohmann::ordered_json heat_map(const HeatMap& map, const std::string& description);

}  // namespace gala
