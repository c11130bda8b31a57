#include <cmath>

#include "gala/report/printers.h"

namespace gala {
namespace {

using Json = nlohmann::ordered_json;

Json number(std::optional<double> value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

Json cell_to_json(const Cell& cell) {
  Json json = {{"state", state_name(cell.state)}};
  if (cell.has_value()) json["value"] = number(cell.value);
  if (cell.deviation) json["deviation"] = number(cell.deviation);
  if (cell.interval) json["interval"] = {cell.interval->low, cell.interval->high};
  if (cell.samples > 0) json["samples"] = cell.samples;
  if (cell.paper) json["paper"] = number(cell.paper);
  if (cell.paper_deviation) json["paper_deviation"] = number(cell.paper_deviation);
  if (cell.difference()) json["difference"] = number(cell.difference());
  if (cell.best) json["best"] = true;
  if (!cell.note.empty()) json["note"] = clean_text(cell.note);
  if (!cell.hyper.empty()) json["hyper"] = clean_text(cell.hyper);
  json["runs"] = Json::array();
  for (const Record* record : cell.runs) json["runs"].push_back(clean_text(record->key));
  return json;
}

}  // namespace

std::string state_name(Cell::State state) {
  switch (state) {
    case Cell::State::kValue:
      return "value";
    case Cell::State::kPartial:
      return "partial";
    case Cell::State::kNotRun:
      return "not run";
    default:
      return "not applicable";
  }
}

nlohmann::ordered_json to_json(const Table& table) {
  Json json = {{"id", clean_text(table.id)},     {"title", clean_text(table.title)},
               {"caption", table.caption},       {"rule", table.rule},
               {"norm", clean_text(table.norm)}, {"heads", table.heads}};
  json["columns"] = Json::array();
  for (const Column& column : table.columns) {
    json["columns"].push_back({{"name", clean_text(column.name)},
                               {"over", clean_text(column.over)},
                               {"higher_is_better", column.higher_is_better},
                               {"unit", column.unit}});
  }
  json["rows"] = Json::array();
  for (const Row& row : table.rows) {
    Json line = {{"heads", Json::array()}, {"cells", Json::array()}};
    for (const std::string& head : row.heads) line["heads"].push_back(clean_text(head));
    for (const Cell& cell : row.cells) line["cells"].push_back(cell_to_json(cell));
    json["rows"].push_back(std::move(line));
  }
  json["notes"] = table.notes;
  return json;
}

nlohmann::ordered_json to_json(const std::vector<TableSet>& tables) {
  Json json = {{"tables", Json::array()}};
  for (const TableSet& set : tables) {
    for (const Table& table : set.variants) json["tables"].push_back(to_json(table));
  }
  return json;
}

}  // namespace gala
