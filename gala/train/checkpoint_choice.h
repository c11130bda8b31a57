#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "gala/model/model.h"
#include "gala/tensor/arena.h"
#include "gala/train/evaluate.h"
#include "gala/train/plan.h"

namespace gala {

/// Decides which weights of a run are kept. With `best` they are those with the highest mean accuracy
/// over the evaluation domains, the first of equals: DomainBed's training-domain validation, where
/// the evaluation domains are the held-out parts of the sources.
class CheckpointChoice {
 public:
  explicit CheckpointChoice(Keep keep) : keep_(keep) {}

  /// Notes how the network did after so many steps; copies its weights when they are to be kept.
  /// True when they are the best so far.
  bool consider(const Model& model, const Evaluation& evaluation, std::int64_t step);
  /// True when the network was considered after this step.
  bool considered(std::int64_t step) const;
  /// The step whose weights are kept; `last` when every step's are overwritten by the next.
  std::int64_t kept_step(std::int64_t last) const;
  /// Puts the kept weights into the network.
  void restore(Model& model) const;

  /// What was considered: a list of {step, accuracy, domains: {name: accuracy}}.
  const nlohmann::json& history() const { return history_; }

  /// Adds to a state what `load` needs to go on.
  void save(State& state) const;
  /// Throws Error when the state lacks a part.
  void load(const State& state, const Model& model);

 private:
  Keep keep_;
  nlohmann::json history_ = nlohmann::json::array();
  double best_ = -1;
  std::int64_t best_step_ = 0;
  std::vector<NamedTensor> weights_;  ///< on the CPU; empty unless the best are kept
};

}  // namespace gala
