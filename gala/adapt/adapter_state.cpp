#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "gala/adapt/adapter.h"
#include "gala/base/error.h"
#include "gala/base/hash.h"
#include "gala/base/words.h"
#include "gala/tensor/state_archive.h"

// Saving an adapter and going on from what was saved.

namespace gala {
namespace {

constexpr int kVersion = 7;

const at::Tensor& tensor_of(const State& state, const std::string& name, at::IntArrayRef sizes) {
  const auto found = state.tensors.find(name);
  if (found == state.tensors.end()) fail("the state lacks {}", name);
  if (found->second.sizes() != sizes) fail("the state holds {} in another shape", name);
  return found->second;
}

}  // namespace

/// Tells whether a state belongs to these source values and this partition.
std::string Adapter::fingerprint() const {
  Sha256 hash;
  for (const auto& entry : arena_->entries()) hash.update(entry.name + "\n");
  for (const Layer& layer : layers().layers) hash.update(layer.name + "\n");
  // In contiguous order, so that the memory layout does not matter.
  for (std::size_t i = 0; i < arena_->entries().size(); ++i) {
    const at::Tensor part = arena_->view(source_.values, i).contiguous();
    hash.update(part.const_data_ptr(), part.nbytes());
  }
  for (const at::Tensor& buffer : source_.buffers) {
    const at::Tensor part = buffer.contiguous();
    hash.update(part.const_data_ptr(), part.nbytes());
  }
  return hash.hex();
}

/// What must be the same for a run to go on bit for bit, in the order in which a difference is told.
nlohmann::ordered_json Adapter::settings() const {
  MethodOptions options = options_;
  options.norm = model_.norm_mode().to_string();
  options.source_data.clear();  // what was learned from it is part of the state
  nlohmann::ordered_json settings{{"model", model_.spec().to_string()}};
  settings.update(to_json(options));
  settings["precision"] = format_value(model_.precision());
  settings["preprocessing"] = model_.preprocessing().to_json();
  settings["run"] = run_;
  settings["parts"] = own_parts_;
  return settings;
}

State Adapter::save() const {
  State state;
  arena_->save(arena_->values(), "parameter/", state);
  StateArchive archive(*arena_, state);
  stepper_->remember(archive);
  if (spread_) spread_->remember(archive);
  for_each_part([&](Part& part) { part.remember(archive); });
  std::size_t i = 0;
  for (const Statistic& each : model_.statistics()) {
    state.tensors["buffer/" + each.name] = each.value->detach().to(at::kCPU).clone();
    if (keeps_healthy()) state.tensors["healthy_buffer/" + each.name] = healthy_.buffers[i++];
  }
  if (keeps_healthy()) arena_->save(healthy_.values, "healthy/", state);
  state.values["version"] = kVersion;
  state.values["fingerprint"] = fingerprint();
  state.values["settings"] = settings();
  state.values["travelled"] = travelled_;
  if (keeps_healthy()) state.values["healthy_travelled"] = healthy_.travelled;
  state.values["guard"] = guard_.save();
  state.values["stopped"] = stopped_;
  state.values["totals"] = {{"batches", totals_.batches},
                            {"steps", totals_.steps},
                            {"refused", totals_.refused},
                            {"skipped", totals_.skipped},
                            {"rollbacks", totals_.rollbacks},
                            {"resets", totals_.resets},
                            {"from_source", totals_.from_source},
                            {"unanswered", totals_.unanswered},
                            {"chosen", totals_.chosen},
                            {"weight", totals_.weight},
                            {"path", totals_.path}};
  return state;
}

void Adapter::load(const State& state) {
  const auto& values = state.values;
  const nlohmann::json version = values.value("version", nlohmann::json());
  if (version != kVersion) {
    fail("the state is of version {}, this program reads and writes version {}", version.dump(),
         kVersion);
  }
  const nlohmann::json settings_then = values.value("settings", nlohmann::json());
  const nlohmann::ordered_json current = settings();
  for (const auto& [name, value] : current.items()) {
    const nlohmann::json saved =
        settings_then.is_object() ? settings_then.value(name, nlohmann::json()) : nlohmann::json();
    if (saved == nlohmann::json(value)) continue;
    if (name == "parts") fail("the state was saved by other parts than those of this run");
    fail("the state was saved with {} {}, this run has {}", name, saved.dump(), value.dump());
  }
  if (values.value("fingerprint", nlohmann::json()) != fingerprint()) {
    fail("the state was saved for other source weights or another partition");
  }
  const State before = save();
  try {
    put_in(state);
  } catch (const std::exception& problem) {
    put_in(before);
    fail("the state cannot be used: {}", in_words(problem));
  }
}

void Adapter::put_in(const State& state) {
  const auto& values = state.values;
  const c10::NoGradGuard no_grad;
  at::Tensor parameters = arena_->values();
  arena_->load(parameters, "parameter/", state);
  if (keeps_healthy()) {
    healthy_.values = at::zeros_like(source_.values);  // it may be the source's own tensor
    arena_->load(healthy_.values, "healthy/", state);
  }
  StateArchive archive(*arena_, state);
  stepper_->remember(archive);
  if (spread_) {
    spread_->remember(archive);
    model_.set_label_spread(spread_->value());
  }
  for_each_part([&](Part& part) { part.remember(archive); });
  std::size_t i = 0;
  for (const Statistic& each : model_.statistics()) {
    const at::IntArrayRef sizes = each.value->sizes();
    each.value->copy_(tensor_of(state, "buffer/" + each.name, sizes));
    if (keeps_healthy()) {
      healthy_.buffers[i++] = tensor_of(state, "healthy_buffer/" + each.name, sizes).clone();
    }
  }
  travelled_ = values.at("travelled").get<std::vector<double>>();
  if (keeps_healthy()) {
    healthy_.travelled = values.at("healthy_travelled").get<std::vector<double>>();
  }
  guard_.load(values.at("guard"));
  stopped_ = values.at("stopped");
  const auto& totals = values.at("totals");
  totals_ = {.batches = totals.at("batches"),
             .steps = totals.at("steps"),
             .refused = totals.at("refused"),
             .skipped = totals.at("skipped"),
             .rollbacks = totals.at("rollbacks"),
             .resets = totals.at("resets"),
             .from_source = totals.at("from_source"),
             .unanswered = totals.at("unanswered"),
             .chosen = totals.at("chosen"),
             .weight = totals.at("weight"),
             .path = totals.at("path")};
  if (totals_.chosen.size() != layers().size() || totals_.weight.size() != layers().size() ||
      totals_.path.size() != layers().size() || travelled_.size() != layers().size() ||
      (keeps_healthy() && healthy_.travelled.size() != layers().size())) {
    fail("the totals are of another number of layers");
  }
}

}  // namespace gala
