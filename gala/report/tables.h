#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "gala/protocol/record.h"
#include "gala/report/pool.h"

namespace gala {

/// A table under every rule for hyper-parameters and in every norm mode that its runs allow.
struct TableSet {
  std::string id;
  std::vector<Table> variants;  ///< never empty; the first is what is shown at first
  /// The variant with this rule and norm mode; the first where there is none.
  const Table& variant(std::string_view rule, std::string_view norm) const;
};

/// The paper's Tables 1 to 4 and those of its supplement in their layout, then one for each further
/// plan that the records name. Cells without a record are "not run".
std::vector<TableSet> make_tables(const std::vector<Record>& records);

/// True when the plan feeds the paper's table: its name is `table`, perhaps with more after it
/// ("table4_continual").
bool feeds(const std::string& plan, const std::string& table);

// The single tables, from a pool of their runs.
Table domainbed_table(const Pool& pool);
Table continual_table(const Pool& pool);
Table study_table(const Pool& pool);
Table condition_table(const Pool& pool);
Table condition_detail_table(const Pool& pool);
Table reset_table(const Pool& pool);
/// Of GALA's runs that move one layer at a time, by their settings: how often a choice repeats a layer
/// within its window.
Table rotation_table(const std::vector<Record>& records);
/// What the runs took, by plan, data, network and machine.
Table cost_table(const std::vector<Record>& records);
/// Whether the rows of a plan are whole methods: at least three adapt, with more than one loss between them,
/// and each always with the same.
bool compares_methods(const Pool& pool);
/// For such a plan: error, forgetting, time and memory of every method, the best first.
Table method_table(const Pool& pool, const std::string& plan);
/// The same in small where such a plan has groups: methods down, groups across, errors alone. Without rows where it has
/// none.
Table crossing_table(const Pool& pool, const std::string& plan);
/// Two rows beside each other, in every plan, group, loss and network that has both: means, the mean of their
/// paired differences with an interval, and how likely chance alone makes it so large. Throws ConfigError where there
/// is no such row, and where nothing can be paired.
Table comparison_table(const std::vector<Record>& records, const std::string& first,
                       const std::string& second, SelectionRule rule, const std::string& norm);
/// For another plan that is no table of the paper: groups and rows down, data sets across.
Table plan_table(const Pool& pool, const std::string& plan);

}  // namespace gala
