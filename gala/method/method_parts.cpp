#include "gala/method/method_parts.h"

#include <typeinfo>

#include "gala/model/norm.h"
#include "gala/step/guard.h"

namespace gala {
namespace {

template <class Part>
void note(std::vector<std::string>& types, const std::unique_ptr<Part>& part) {
  if (!part) return;
  const Part& given = *part;
  types.emplace_back(typeid(given).name());
}

template <class Part, class Make>
void make_one(std::unique_ptr<Part>& part, const std::string& text, const Make& make) {
  if (!part && text != kNoPart) part = make(text);
}

void write_out(std::string& text, const std::vector<MethodInfo>& known, std::string_view kind) {
  std::vector<Spec> specs = parse_specs(text);
  for (Spec& spec : specs) spec = written_out(spec, known, kind);
  text = to_string(specs);
}

/// A part of which there is one at most.
void write_out_one(std::string& text, const std::vector<MethodInfo>& known, std::string_view kind) {
  if (text != kNoPart) text = written_out(Spec::parse(text), known, kind).to_string();
}

}  // namespace

std::vector<std::string> make_parts(const MethodOptions& options, MethodParts& parts) {
  std::vector<std::string> own;
  note(own, parts.loss);
  note(own, parts.optimizer);
  note(own, parts.selector);
  note(own, parts.view);
  note(own, parts.perturb);
  parts.for_each([&](const Part& part) { own.emplace_back(typeid(part).name()); });
  if (!parts.loss) parts.loss = make_loss(options.loss);
  if (!parts.optimizer) parts.optimizer = make_optimizer(options.optimizer);
  if (!parts.selector) {
    parts.selector = make_selector(options.select, static_cast<std::uint64_t>(options.seed));
  }
  make_one(parts.samples, options.samples, make_sample_rule);
  make_one(parts.view, options.view, [](const Spec& spec) { return make_view(spec); });
  make_one(parts.teacher, options.teacher, make_teacher);
  make_one(parts.perturb, options.perturb, make_perturbation);
  make_one(parts.penalty, options.penalty, make_penalty);
  make_one(parts.reset, options.reset, make_reset_rule);
  make_one(parts.store, options.store, make_store);
  make_one(parts.drift, options.drift, make_drift);
  make_one(parts.readout, options.readout, make_readout);
  if (parts.after_step.empty()) {
    for (const Spec& spec : parse_specs(options.after_step)) {
      parts.after_step.push_back(make_after_step(spec));
    }
  }
  return own;
}

MethodOptions written_out(MethodOptions options) {
  const auto one = [](std::string& text, const auto& registry, std::string_view kind) {
    write_out_one(text, describe_registry(registry), kind);
  };
  write_out(options.loss, describe_registry(loss_registry()), Loss::kKind);
  write_out(options.after_step, describe_registry(after_step_registry()), AfterStep::kKind);
  one(options.select, selector_registry(), Selector::kKind);
  one(options.optimizer, optimizer_registry(), Optimizer::kKind);
  one(options.samples, sample_rule_registry(), SampleRule::kKind);
  one(options.view, view_registry(), View::kKind);
  one(options.teacher, teacher_registry(), Teacher::kKind);
  one(options.perturb, perturbation_registry(), Perturbation::kKind);
  one(options.penalty, penalty_registry(), Penalty::kKind);
  one(options.reset, reset_rule_registry(), ResetRule::kKind);
  one(options.readout, readout_registry(), Readout::kKind);
  one(options.store, store_registry(), Store::kKind);
  one(options.drift, drift_registry(), Drift::kKind);
  if (!options.norm.empty()) options.norm = NormMode::parse(options.norm).to_string();
  const Spec guard = Spec::parse(options.guard);
  options.guard =
      options_to_spec(guard.name, parse_options<GuardOptions>(guard, "guard")).to_string();
  return options;
}

}  // namespace gala
