#include "gala/protocol/method.h"

#include <algorithm>

#include "gala/adapt/after_step.h"
#include "gala/adapt/fit.h"
#include "gala/adapt/readout.h"
#include "gala/loss/loss.h"
#include "gala/loss/sample_rule.h"
#include "gala/model/norm.h"
#include "gala/optim/optimizer.h"
#include "gala/select/selector.h"
#include "gala/step/guard.h"

namespace gala {
namespace {

/// What a run in which nothing moves still depends on.
constexpr std::string_view kMattersWhenIdle[] = {"select", "norm", "readout", "guard", "seed"};

std::string guard_spec(const std::string& text) {
  const Spec spec = Spec::parse(text);
  return options_to_spec(spec.name, parse_options<GuardOptions>(spec, "guard")).to_string();
}

/// What the plan asks for, over what the protocol prescribes.
MethodOptions requested(const RunRequest& request, const RunDefaults& defaults) {
  MethodOptions options = defaults.method;
  for (const auto& [name, text] : request.method) set_option(options, name, text);
  return options;
}

/// The same with what does not matter at its default.
MethodOptions requested_when_idle(const RunRequest& request, const RunDefaults& defaults) {
  MethodOptions options = defaults.method;
  options.partition.reset();
  for (const std::string_view name : kMattersWhenIdle) {
    const auto given = request.method.find(std::string(name));
    if (given != request.method.end()) set_option(options, name, given->second);
  }
  return options;
}

}  // namespace

Method decide_method(const RunRequest& request, const RunDefaults& defaults, Model& network) {
  const auto losses = describe_registry<Loss>(loss_registry());
  const auto optimizers = describe_registry<Optimizer>(optimizer_registry());
  const auto selectors = describe_registry<Selector, std::uint64_t>(selector_registry());
  const auto whole = [](std::string& text, const std::vector<MethodInfo>& known,
                        std::string_view kind) {
    const Spec spec = written_out(Spec::parse(text), known, kind);
    text = spec.to_string();
    return spec;
  };

  Method method;
  MethodOptions& options = method.options = requested(request, defaults);
  const auto selector = make_selector(whole(options.select, selectors, Selector::kKind),
                                      static_cast<std::uint64_t>(options.seed));
  method.idle = selector->idle();
  if (method.idle) {
    options = requested_when_idle(request, defaults);
    whole(options.select, selectors, Selector::kKind);
  }
  const auto whole_part = [&](std::string& text, const auto& registry, std::string_view kind) {
    if (text != "none") whole(text, describe_registry(registry), kind);
  };
  whole_part(options.samples, sample_rule_registry(), SampleRule::kKind);
  whole_part(options.after_step, after_step_registry(), AfterStep::kKind);
  whole_part(options.readout, readout_registry(), Readout::kKind);
  const auto loss = make_loss(whole(options.loss, losses, Loss::kKind));
  make_optimizer(whole(options.optimizer, optimizers, Optimizer::kKind));
  options.norm = NormMode::parse(options.norm).to_string();
  options.guard = guard_spec(options.guard);
  Guard(options.guard, network.classes());
  const Fit found = fit(network, options, *loss, *selector);
  options.partition = found.granularity;
  options.head = found.head ? HeadRule::kAdapt : HeadRule::kFreeze;
  return method;
}

}  // namespace gala
