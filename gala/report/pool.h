#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gala/protocol/selection.h"
#include "gala/report/table.h"

namespace gala {

/// A run at its place, with the names tables compare.
struct PoolRun {
  const Record* record = nullptr;
  const Labels* labels = nullptr;
  std::string group, row;  ///< by plain_name
  std::string loss;        ///< as tables name it
};

/// What one asks a pool for; what is left out may be anything.
struct PoolQuery {
  std::optional<std::string> backbone = {}, loss = {}, group = {}, row = {}, dataset = {};
};

/// Which places of runs a table is made from.
using Wanted = std::function<bool(const Labels&)>;

/// The runs that a table is made from: those of its plans, in one norm mode, one for each place after
/// a rule has chosen the hyper-parameters.
class Pool {
 public:
  /// A norm mode chooses within the plans whose rows have several; an empty one takes all. Runs in which
  /// nothing adapts are of every norm mode.
  Pool(const std::vector<Record>& records, const Wanted& wanted, SelectionRule rule,
       const std::string& norm);

  std::vector<const PoolRun*> find(const PoolQuery& query) const;
  /// True when runs were made, but the rule could choose none of them.
  bool undecided(const PoolQuery& query) const;
  const std::vector<PoolRun>& runs() const { return runs_; }
  /// All of its plans, in store order, whatever the rule chose.
  const std::vector<PoolRun>& candidates() const { return all_; }
  bool empty() const { return all_.empty(); }
  bool has_grid() const { return has_grid_; }
  /// Norm modes of the adapting runs.
  std::set<std::string> norms() const;
  std::int64_t contested() const { return contested_; }
  /// Names that occur, in store order.
  std::vector<std::string> backbones() const;
  std::vector<std::string> datasets() const;
  /// Trials of all that the query finds, whatever the rule chose.
  std::set<std::int64_t> trials(const PoolQuery& query) const;
  /// What a reader must know about the runs as a whole.
  std::vector<std::string> notes() const;

 private:
  std::vector<PoolRun> all_, runs_;
  std::vector<HyperChoice> choices_;
  bool has_grid_ = false;
  std::int64_t contested_ = 0;
};

/// Norm modes that one can choose between: those of plans in which one row was run in several, the most
/// used first. Empty where there is no choice.
std::vector<std::string> norm_choices(const std::vector<Record>& records, const Wanted& wanted);

/// A number a record may have, as a share.
using Metric = std::function<std::optional<double>(const PoolRun&)>;

/// What a mean was taken over.
struct Coverage {
  std::set<std::string> backbones, losses, datasets;
  std::map<std::string, std::set<std::string>> environments;  ///< by data set
};

/// Mean over backbones and losses of the mean over data sets of the mean over targets of the mean
/// over trials, times `scale`; the samples are those means for each trial that has every target.
/// Not run when there are no runs, not applicable when one has no such number.
Cell mean_cell(const std::vector<const PoolRun*>& runs, const Metric& metric, double scale,
               Coverage* coverage = nullptr);

/// Fills in deviation and interval from what repeats.
void set_samples(Cell& cell, const std::vector<double>& samples);

/// "PACS only", "PACS, ResNet-18 only": what there is where less is there than in the paper; empty
/// when all is there. Each pair: what there is, what the paper has.
using Share = std::pair<std::set<std::string>, std::set<std::string>>;
std::string only_note(const std::vector<Share>& shares);

/// The block the run adapts alone, as `fixed_block`; nothing also where its spec cannot be read.
std::optional<int> lone_block(const Record& record);
/// A number that the spec gives an option; nothing where it has none, or cannot be read.
std::optional<double> spec_number(const std::string& spec, const std::string& option);

/// A text of the provenance; empty where it has none of that name.
std::string provenance_text(const Record& record, const char* name);

/// The name that tables give the source model, however a plan calls it.
std::string plain_row(const std::string& row);

}  // namespace gala
