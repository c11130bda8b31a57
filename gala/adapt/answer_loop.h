#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "gala/adapt/adapter.h"
#include "gala/adapt/tally.h"
#include "gala/data/loader.h"

namespace gala {

/// Where the time of answers went, in milliseconds.
struct AnswerTimes {
  double load = 0;    ///< until the batch was there
  double answer = 0;  ///< with the steps
  StepTimes steps = {};

  AnswerTimes& operator+=(const AnswerTimes& other);
};

/// A batch of a stream and the answer to it.
struct Answered {
  const Batch& batch;
  const Answer& answer;
  std::size_t adapter = 0;  ///< number of the one that answered
  Tally tally = {};         ///< of this answer
  AnswerTimes times = {};   ///< of this answer; where several answer, the first has the load
};

/// Gives the next batch, or nothing at the end: mostly `Loader::next`.
using NextBatch = std::function<std::optional<Batch>()>;

/// Takes an answer in; false ends the loop. What it does is not timed.
using AnswerSink = std::function<bool(const Answered&)>;

/// What happens where a stream goes from one segment to the next.
struct Borders {
  bool restart = false;  ///< as Stream::reset_at_borders: begin each segment with the source model
  std::int32_t segment = 0;  ///< that of the last batch before the first, in a run that goes on
};

/// Answers batch after batch and hands every answer to the sink. Returns false when the sink ended it.
/// What one of the three throws goes through.
bool for_each_answer(const NextBatch& next, Adapter& adapter, const AnswerSink& sink,
                     const Borders& borders = {});

/// The same with several, which answer each batch in turn.
bool for_each_answer(const NextBatch& next, std::span<Adapter* const> adapters,
                     const AnswerSink& sink, const Borders& borders = {});

/// Answers of the network as it is, in its norm mode: nothing moves, statistics included.
bool for_each_answer(const NextBatch& next, Model& model, const AnswerSink& sink);

}  // namespace gala
