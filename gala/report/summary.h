#pragma once
#include <string>
#include <vector>

#include "gala/report/tables.h"

namespace gala {

/// What the numbers say about one benchmark, in a sentence.
struct Verdict {
  enum class Kind {
    kAgrees,   ///< GALA stands to the source model and to all layers as in the paper
    kDiffers,  ///< in at least one comparison it does not
    kOpen,     ///< nothing to compare with
    kNotRun    ///< no number of ours
  };
  std::string benchmark;
  Kind kind = Kind::kOpen;
  std::string mark;  ///< "as in the paper"
  std::string sentence;
};

/// One for each data set and backbone that was run, and one for each of the paper's tables of which
/// nothing was. From the first variant of each table.
std::vector<Verdict> make_verdicts(const std::vector<TableSet>& tables);

/// Source model, all layers and GALA of every benchmark that was run, beside the paper's.
Table summary_table(const std::vector<TableSet>& tables);

/// What was run, on what: pairs of a name and a text.
std::vector<std::pair<std::string, std::string>> describe_records(
    const std::vector<Record>& records);

}  // namespace gala
