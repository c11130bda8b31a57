#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gala/protocol/metrics.h"

namespace gala {

/// One number of a table, or the reason why there is none.
struct Cell {
  enum class State {
    kValue,          ///< ours, measured as the paper's
    kPartial,        ///< ours, but over less than the paper's: `note` says what ("PACS only")
    kNotRun,         ///< no record, or not enough of them: `note` says what is missing
    kNotApplicable,  ///< the row has no such number
  };
  State state = State::kNotRun;
  double value = 0;                       ///< in the unit of its column
  std::optional<double> deviation = {};   ///< sample standard deviation of the samples
  std::optional<Interval> interval = {};  ///< 95 % percentile bootstrap of their mean
  std::int64_t samples = 0;               ///< what the two are over: trials or domains
  std::optional<double> paper = {}, paper_deviation = {};
  std::string note = {};
  std::string hyper = {};                  ///< hyper-parameters chosen, where there is a grid
  std::vector<const Record*> runs = {};    ///< what it was computed from
  std::vector<const Labels*> places = {};  ///< what these runs are in the table's plans
  bool best = false;                       ///< of its block of rows, by the exact numbers
  bool second = false;
  std::set<std::int64_t> trials = {};  ///< that it is a mean over; empty where they do not count

  bool has_value() const { return state == State::kValue || state == State::kPartial; }
  /// Ours minus the paper's, where both are of the same thing.
  std::optional<double> difference() const;
};

struct Column {
  std::string name = {};  ///< "PACS"
  std::string over = {};  ///< a heading over several columns: "ResNet-18"; often empty
  bool higher_is_better = true;
  int digits = 2;
  std::string unit = "%";
  bool directed = true;  ///< false where rows differ in what is better
};

struct Row {
  std::vector<std::string> heads;  ///< one a head column: {"ResNet-18", "PL", "GALA"}
  std::vector<Cell> cells;         ///< one a column
  bool border = false;             ///< a line stands above it
  std::string loss = {};           ///< as tables name it; empty where nothing adapts
  std::string method = {};         ///< "GALA"
  std::string group = {};          ///< what the method is one of: "Window size"; often empty

  /// "Window size: 5", "GALA": says what it is without the table.
  std::string full_name() const { return group.empty() ? method : group + ": " + method; }
};

/// A table of results. Every printer prints the same one.
struct Table {
  std::string id;     ///< "table1"
  std::string title;  ///< "Table 1: DomainBed"
  std::string caption;
  std::vector<std::string> heads;  ///< names of the head columns
  std::vector<Column> columns;
  std::vector<Row> rows;
  std::vector<std::string> notes;  ///< what a reader must know about these very numbers
  std::string rule;                ///< by which hyper-parameters were chosen; empty without a grid
  std::string norm;                ///< norm mode of the adapting runs
  bool of_paper = false;           ///< the paper has this table
  bool of_methods = false;         ///< rows are whole methods, each with a loss of its own
  std::optional<std::size_t> sorted_by = {};  ///< the column by which all rows stand, best first

  std::int64_t measured() const;  ///< cells with a number of ours
};

/// Marks the best and the second best number of each column within rows that `block` gives the same
/// number; equal numbers share the mark. A mean that lacks trials which others there have does not
/// compete, and a note of the table says so. None has the mark where all are equal, nor where they are
/// means over different targets, or over different losses unless it is `across_losses`, where a loss is part
/// of a method.
void mark_best(Table& table, const std::vector<int>& block, bool across_losses = false);

/// The same for these rows of one column. Returns whether a mean was left out because it lacks trials.
bool mark_column(Table& table, std::size_t column, const std::vector<std::size_t>& rows,
                 bool across_losses = false);

/// Of the cells that have a finite number those that may be compared: the means over all trials that
/// one of them has.
std::vector<Cell*> comparable(const std::vector<Cell*>& cells);
/// What a table says where `comparable` left some out.
inline constexpr const char* kFewerTrials =
    "A mean over fewer trials than others beside it have is not compared with them: it is not in "
    "bold.";

/// "82.10", or "not run", "N/A"; a number that is not finite is "NaN".
std::string value_text(const Cell& cell, const Column& column);
/// "0.6"; empty without a deviation.
std::string deviation_text(const Cell& cell);
/// A rule for hyper-parameters in words, with its name; anything else as it is.
std::string rule_words(const std::string& rule);
/// "+1.46" or "-0.30", with a real minus sign.
std::string difference_text(double difference, int digits);

}  // namespace gala
