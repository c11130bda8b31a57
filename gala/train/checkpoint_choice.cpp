#include "gala/train/checkpoint_choice.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "gala/base/error.h"
#include "gala/base/words.h"

namespace gala {
namespace {

constexpr char kKey[] = "choice";
constexpr char kPrefix[] = "best/";

template <class Visit>
void visit_tensors(const Model& model, Visit&& visit) {
  for (const Parameter& parameter : model.parameters()) visit(parameter.name, parameter.value);
  for (const Buffer& buffer : model.buffers()) visit(buffer.name, buffer.value);
}

nlohmann::json to_json(const Evaluation& evaluation, std::int64_t step) {
  nlohmann::json domains = nlohmann::json::object();
  for (const Evaluation::Part& part : evaluation.parts) domains[part.domain] = part.accuracy();
  return {{"step", step}, {"accuracy", evaluation.mean_accuracy()}, {"domains", domains}};
}

}  // namespace

bool CheckpointChoice::consider(const Model& model, const Evaluation& evaluation,
                                std::int64_t step) {
  history_.push_back(to_json(evaluation, step));
  if (!(evaluation.mean_accuracy() > best_)) return false;
  best_ = evaluation.mean_accuracy();
  best_step_ = step;
  if (keep_ == Keep::kBest) {
    weights_.clear();
    visit_tensors(model, [&](const std::string& name, const at::Tensor& value) {
      weights_.push_back({name, value.detach().cpu().contiguous().clone()});
    });
  }
  return true;
}

bool CheckpointChoice::considered(std::int64_t step) const {
  return !history_.empty() && history_.back().at("step") == step;
}

std::int64_t CheckpointChoice::kept_step(std::int64_t last) const {
  return weights_.empty() ? last : best_step_;
}

void CheckpointChoice::restore(Model& model) const {
  if (weights_.empty()) return;
  const c10::NoGradGuard no_grad;
  std::size_t i = 0;
  visit_tensors(model, [&](const std::string&, const at::Tensor& value) {
    value.copy_(weights_[i++].tensor);
  });
}

void CheckpointChoice::save(State& state) const {
  state.values[kKey] = {{"history", history_}, {"best", best_}, {"step", best_step_}};
  for (const NamedTensor& item : weights_) state.tensors[kPrefix + item.name] = item.tensor;
}

void CheckpointChoice::load(const State& state, const Model& model) {
  const auto found = state.values.find(kKey);
  if (found == state.values.end()) fail("the state lacks the choice of a checkpoint");
  std::vector<NamedTensor> weights;
  nlohmann::json history;
  double best = 0;
  std::int64_t step = 0;
  try {
    history = found->at("history");
    best = found->at("best");
    step = found->at("step");
  } catch (const nlohmann::json::exception& error) {
    fail("the state's choice of a checkpoint cannot be read: {}", in_words(error));
  }
  if (keep_ == Keep::kBest && !history.empty()) {
    visit_tensors(model, [&](const std::string& name, const at::Tensor& value) {
      const auto tensor = state.tensors.find(kPrefix + name);
      if (tensor == state.tensors.end() || tensor->second.sizes() != value.sizes()) {
        fail("the state lacks {}{}, or it has another shape", kPrefix, name);
      }
      weights.push_back({name, tensor->second});
    });
  }
  history_ = std::move(history);
  best_ = best;
  best_step_ = step;
  weights_ = std::move(weights);
}

}  // namespace gala
