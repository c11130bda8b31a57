#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gala/report/published.h"
#include "gala/report/tables.h"

namespace gala {

// What the makers of the paper's tables share.

using Names = std::vector<std::string>;

/// The sets of DomainBed that the paper averages over, and how many targets each has.
const std::set<std::string>& domainbed_sets();
inline constexpr std::size_t kEnvironments = 4;

/// A stream of the paper's Table 2 and its network.
struct ContinualSet {
  const char* dataset;
  const char* backbone;
};
inline constexpr ContinualSet kContinualSets[] = {{"CIFAR-10-C", "WRN-28-10"},
                                                  {"CIFAR-100-C", "ResNeXt-29"}};

std::optional<double> accuracy_of(const PoolRun& run);
std::optional<double> error_of(const PoolRun& run);

/// The column of tables of methods that holds the time of an image.
inline constexpr const char* kTimeColumn = "ms per image";
/// What decides the time of a run beside the machine, to stand behind it: ", bf16, 3 at once".
std::string conditions_of(const Record& record);
/// The machine with these: "NVIDIA H200, bf16".
std::string made_with(const Record& record);

/// `first`, then what was found beyond it.
Names with_others(Names first, const Names& found);
/// Rows (as labelled) that the query finds beyond the known ones.
Names further_rows(const Pool& pool, const PoolQuery& query, const Names& known);
/// PL, SHOT, then other losses of the pool.
Names losses_of(const Pool& pool);
/// The losses that each row of the pool adapts with; rows that do not adapt are left out.
std::map<std::string, std::set<std::string>> losses_by_method(const Pool& pool);
/// The known rows with the pool's others before the last of them, which is GALA.
Names rows_before_last(const Pool& pool, const PoolQuery& query, Names known);

void add_paper(Cell& cell, const std::optional<PublishedNumber>& number);
/// Turns a value into a partial one when the note says what is missing.
void make_partial(Cell& cell, const std::string& note);
/// Says so where runs were made but none could be chosen.
void explain_missing(Cell& cell, const Pool& pool, const PoolQuery& query);
/// What of a DomainBed set is there, when it is not all of it: "sketch only". Where there are several
/// sets, of which: "PACS: sketch only; VLCS: SUN09 only".
std::string environments_note(const Coverage& coverage);
/// A note of `only_note` with that behind it: "PACS: sketch only".
std::string with_environments(const std::string& note, const Coverage& coverage);
/// Says of a mean over fewer trials than there are which it has: "trial 12 only", "3 of 5 trials".
/// Behind what else it lacks: "sketch only; trial 12 only".
void note_trials(Cell& cell, const std::set<std::int64_t>& trials);

/// Whether rows that do nothing were compared with others where the best were marked, for captions.
class IdleRivals {
 public:
  /// These rows are compared in a column.
  void see(Table& table, std::size_t column, const std::vector<std::size_t>& rows);
  /// ", doing nothing included", or where, or that not; empty where no row does nothing.
  std::string words() const;

 private:
  bool compared_ = false, left_out_ = false;  // somewhere
};

/// Mean over a continual stream; the deviation is over its corruptions, as the paper's is. Runs of
/// the paper's network count; where there are none, those of another, as a partial value.
Cell continual_cell(const Pool& pool, const ContinualSet& set, const PoolQuery& query,
                    bool as_error);

}  // namespace gala
