#pragma once
#include <map>
#include <utility>
#include <vector>

#include "gala/adapt/answer_loop.h"
#include "gala/protocol/record.h"
#include "gala/protocol/trace.h"

namespace gala {

/// Takes in the answers of a run, batch by batch, and fills its record.
class Gatherer {
 public:
  Gatherer(const Stream& stream, const Adapter& adapter, bool trace);

  void take(const Answered& answered);
  /// Writes what was seen, and what the adapter counted itself.
  void fill(const Adapter& adapter, Record& record) const;
  const Trace& trace() const { return trace_; }

 private:
  void score(const Batch& batch, const std::vector<std::int64_t>& predictions);
  void take_step(const StepRecord& step);

  const Stream& stream_;
  bool tracing_;
  std::map<std::pair<std::size_t, std::int32_t>, Tally> tallies_;  ///< by segment and domain
  OverTime over_time_;
  std::size_t segment_ = 0;  ///< of the last position scored
  std::vector<std::pair<std::int64_t, std::int64_t>> choices_;
  RotationCount rotation_;
  std::vector<double> gaps_, step_times_;
  AnswerTimes times_;
  GuardSummary guard_;
  Trace trace_;
};

}  // namespace gala
