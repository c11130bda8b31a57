#pragma once
#include <map>
#include <utility>
#include <vector>

#include "gala/adapt/adapter.h"
#include "gala/data/loader.h"
#include "gala/protocol/record.h"
#include "gala/protocol/trace.h"

namespace gala {

/// The class of the largest logit of each image; kNoClass where a logit is not finite.
std::vector<std::int64_t> predictions_of(const at::Tensor& logits);

/// How many of a batch's predictions are right; images without a label count for nothing.
std::int64_t count_correct(const std::vector<std::int64_t>& predictions, const Batch& batch);

/// Takes in the answers of a run, batch by batch, and fills its record.
class Gatherer {
 public:
  Gatherer(const Stream& stream, const Adapter& adapter, bool trace);

  void take(const Batch& batch, const Answer& answer, double load_ms, double answer_ms);
  /// Writes what was seen, and what the adapter counted itself.
  void fill(const Adapter& adapter, Record& record) const;
  const Trace& trace() const { return trace_; }

 private:
  void score(const Batch& batch, const std::vector<std::int64_t>& predictions);
  void take_step(const StepRecord& step);

  const Stream& stream_;
  bool tracing_;
  std::map<std::pair<std::size_t, std::int32_t>, Score> scores_;  ///< by segment and domain
  OverTime over_time_;
  std::size_t segment_ = 0;  ///< of the last position scored
  std::vector<double> weights_;
  std::vector<std::pair<std::int64_t, std::int64_t>> choices_;
  RotationCount rotation_;
  std::vector<double> gaps_, step_times_;
  StepTimes parts_;
  double load_ms_ = 0, answer_ms_ = 0;
  GuardSummary guard_;
  Trace trace_;
};

}  // namespace gala
