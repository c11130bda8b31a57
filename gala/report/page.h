#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "gala/report/figures.h"
#include "gala/report/summary.h"
#include "gala/report/traces.h"

namespace gala {

/// Everything a page shows. Records, names and notes may hold any text: it stays text.
struct PageContent {
  std::string title;
  std::string lead;
  std::vector<std::pair<std::string, std::string>> facts;
  std::vector<Verdict> verdicts;
  std::vector<TableSet> tables;                  ///< tables of results
  std::vector<Figure> figures;                   ///< of `records`, by their number
  const std::vector<Record>* records;            ///< each gets a page of its own
  std::map<std::string, CosineSummary> cosines;  ///< by key
  bool with_summary = false;                     ///< ours beside the paper's, from `tables`
  std::vector<std::string> notes;                ///< what could not be shown, as sentences
};

/// One self-contained HTML page: no request leaves it, and no script runs in it but its own. Throws
/// ConfigError when the program was built without Node, saying what is missing.
std::string make_page(const PageContent& content);

/// The data of the page but for series and traces: all runs, charts, and the runs behind the numbers
/// that `cells` lists.
nlohmann::ordered_json page_data(const PageContent& content,
                                 const std::vector<std::vector<const Record*>>& cells);

/// Puts the series of those runs that fit into the page's data, in place of any there: first of the
/// runs that figures draw, then of those in tables, then of the others in store order, as long as they
/// take no more than `room` bytes of JSON.
void set_series(nlohmann::ordered_json& data, const PageContent& content, std::size_t room);

/// Adds the traces of the runs whose series are there.
void add_traces(nlohmann::ordered_json& data, const PageContent& content);

/// Records without their series as {count, columns}. A column is {at: [field] or [group, field],
/// values, of}: run i has values[of[i]], or values[i] without `of`; -1 or null where it has none.
nlohmann::ordered_json page_runs(const std::vector<Record>& records);

/// Any JSON with its texts cleaned.
nlohmann::ordered_json cleaned(const nlohmann::json& json);
/// To so many significant digits.
double rounded(double value, int digits);

/// A table as HTML. Numbers link to their runs: to the run, or to entry #cell/N of `cells`.
std::string table_html(const Table& table, std::vector<std::vector<const Record*>>& cells);

/// Text as part of a URL.
std::string percent_encoded(const std::string& text);
std::string base64(const std::string& bytes);

}  // namespace gala
