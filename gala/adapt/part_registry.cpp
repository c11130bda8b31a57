#include "gala/adapt/after_step.h"
#include "gala/adapt/ensemble.h"
#include "gala/adapt/prior.h"
#include "gala/adapt/readout.h"

namespace gala {
namespace {

constexpr RegistryEntry<AfterStep> kAfterSteps[] = {
    registry_entry<AfterStep, EnsembleAfterStep>(
        "ensemble", "every parameter goes a little back to the source (ROID)"),
};

constexpr RegistryEntry<Readout> kReadouts[] = {
    registry_entry<Readout, PriorReadout>(
        "prior", "logits times the smoothed mean of the batch's answers (ROID)"),
};

}  // namespace

std::span<const RegistryEntry<AfterStep>> after_step_registry() {
  return kAfterSteps;
}

std::unique_ptr<AfterStep> make_after_step(const Spec& spec) {
  return make_from_registry<AfterStep>(after_step_registry(), spec);
}

std::span<const RegistryEntry<Readout>> readout_registry() {
  return kReadouts;
}

std::unique_ptr<Readout> make_readout(const Spec& spec) {
  return make_from_registry<Readout>(readout_registry(), spec);
}

}  // namespace gala
