#pragma once
#include "cli/adapt_run.h"
#include "cli/scores.h"
#include "gala/adapt/answer_loop.h"
#include "gala/data/stream.h"
#include "gala/step/rotation.h"

namespace gala {

/// What a run has come to, beside what the adapter counts itself.
struct RunCounts {
  std::int64_t answered = 0;
  std::int64_t differing = 0;  ///< in shadow mode: answers that adaptation would change
  std::int64_t collapses = 0;  ///< judgements of the guard
  std::int64_t unreadable = 0;
  std::string first_unreadable;
  std::optional<RotationCount> rotation;  ///< of a selector that chooses by window
};

/// Model, data, stream and method, to standard error.
void print_heading(const AdaptFlags& flags, const DataSource& source, const Stream& stream,
                   const Adapter& adapter);

/// What is said of a collapse, in a line.
std::string collapse_line(const HealthEvent& event);

/// Accuracy by segment, steps, what shadow mode and guard saw, and the layers that moved most, to
/// standard output.
void print_result(const AdaptFlags& flags, const Stream& stream, const Adapter& adapter,
                  const Scores& scores, const RunCounts& counts);

/// Where the time went, to standard output.
/// `answers`: how long each batch took, steps included.
void print_profile(const AnswerTimes& times, std::vector<double> answers, bool on_cpu);

}  // namespace gala
