#include "gala/adapt/answer_loop.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <utility>

#include "gala/base/stopwatch.h"
#include "gala/model/classes.h"

namespace gala {
namespace {

/// The answer of number `who`; `border` where the batch before was of another segment.
using AnswerBatch = std::function<Answer(std::size_t who, const Batch& batch, bool border)>;

/// The loop that all of them are.
bool loop(const NextBatch& next, std::size_t count, const AnswerBatch& answer_batch,
          const AnswerSink& sink, std::int32_t segment) {
  Stopwatch watch;
  while (const std::optional<Batch> batch = next()) {
    double load = watch.lap();
    const bool border = batch->segment != segment;
    segment = batch->segment;
    for (std::size_t who = 0; who < count; ++who) {
      const Answer answer = answer_batch(who, *batch, border);
      AnswerTimes times{.load = std::exchange(load, 0), .answer = watch.lap()};
      for (const StepRecord& step : answer.steps) times.steps += step.times;
      if (!sink({*batch, answer, who, tally_of(*batch, answer.predictions), times})) return false;
      watch.lap();
    }
  }
  return true;
}

}  // namespace

AnswerTimes& AnswerTimes::operator+=(const AnswerTimes& other) {
  load += other.load;
  answer += other.answer;
  steps += other.steps;
  return *this;
}

bool for_each_answer(const NextBatch& next, std::span<Adapter* const> adapters,
                     const AnswerSink& sink, const Borders& borders) {
  const auto answer = [&](std::size_t who, const Batch& batch, bool border) {
    if (border && borders.restart) adapters[who]->restart();
    return adapters[who]->answer(batch.images);
  };
  return loop(next, adapters.size(), answer, sink, borders.segment);
}

bool for_each_answer(const NextBatch& next, Adapter& adapter, const AnswerSink& sink,
                     const Borders& borders) {
  Adapter* const one[] = {&adapter};
  return for_each_answer(next, one, sink, borders);
}

bool for_each_answer(const NextBatch& next, Model& model, const AnswerSink& sink) {
  const auto answer = [&](std::size_t, const Batch& batch, bool) {
    const c10::NoGradGuard no_grad;
    Answer given;
    given.logits = model.forward(batch.images, /*update_statistics=*/false).logits;
    given.predictions = predictions_of(given.logits);
    for (std::int64_t i = 0; i < std::ssize(given.predictions); ++i) {
      if (given.predictions[static_cast<std::size_t>(i)] == kNoClass) given.unanswered.push_back(i);
    }
    return given;
  };
  return loop(next, 1, answer, sink, /*segment=*/0);
}

}  // namespace gala
