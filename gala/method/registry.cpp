#include "gala/method/after_step.h"
#include "gala/method/balanced_store.h"
#include "gala/method/cosine_penalty.h"
#include "gala/method/drift.h"
#include "gala/method/ensemble.h"
#include "gala/method/fisher.h"
#include "gala/method/kalman.h"
#include "gala/method/lame.h"
#include "gala/method/law_probe.h"
#include "gala/method/palm_probe.h"
#include "gala/method/penalty.h"
#include "gala/method/perturbation.h"
#include "gala/method/prior.h"
#include "gala/method/probe.h"
#include "gala/method/readout.h"
#include "gala/method/reset_rules.h"
#include "gala/method/restore.h"
#include "gala/method/sharpness.h"
#include "gala/method/store.h"
#include "gala/method/t3a.h"
#include "gala/method/teacher.h"
#include "gala/method/window_store.h"

namespace gala {
namespace {

constexpr RegistryEntry<Teacher> kTeachers[] = {
    registry_entry<Teacher, MeanTeacher>("mean", "a moving mean of the student (CoTTA)"),
    registry_entry<Teacher, SourceTeacher>("source",
                                           "the source model, under the norm mode at hand"),
};

constexpr RegistryEntry<Perturbation> kPerturbations[] = {
    registry_entry<Perturbation, SharpnessPerturbation>(
        "sam", "where the loss is larger: steps look for flat places (SAR)"),
};

constexpr RegistryEntry<Penalty> kPenalties[] = {
    registry_entry<Penalty, FisherPenalty>(
        "fisher", "what mattered to the source is held back (EATA; --source-data)"),
    registry_entry<Penalty, DistancePenalty>("distance", "everything is held back alike"),
    registry_entry<Penalty, CosinePenalty>("cosine", "every tensor keeps its direction (PeTTA)"),
};

constexpr RegistryEntry<Store> kStores[] = {
    registry_entry<Store, BalancedStore>(
        "balanced", "a memory with no class above its share, by age and entropy (RoTTA)"),
    registry_entry<Store, WindowStore>("window",
                                       "the last images; batches of one are answered among them"),
};

constexpr RegistryEntry<Drift> kDrifts[] = {
    registry_entry<Drift, FeatureDrift>(
        "features", "class means of the features beside the source's (PeTTA; --source-data)"),
};

constexpr RegistryEntry<Probe> kProbes[] = {
    registry_entry<Probe, PalmProbe>("palm", "of the selector palm"),
    registry_entry<Probe, LawProbe>("law", "of the selector law"),
};

constexpr RegistryEntry<AfterStep> kAfterSteps[] = {
    registry_entry<AfterStep, EnsembleAfterStep>(
        "ensemble", "every parameter goes a little back to the source (ROID)"),
    registry_entry<AfterStep, KalmanAfterStep>(
        "kalman", "every parameter goes a little back to a filtered copy of itself (CMF)"),
    registry_entry<AfterStep, RestoreAfterStep>(
        "restore", "some numbers, drawn at random, go back to the source (CoTTA)"),
};

constexpr RegistryEntry<ResetRule> kResetRules[] = {
    registry_entry<ResetRule, EveryReset>("every", "every so many steps (RDumb)"),
    registry_entry<ResetRule, LossReset>("loss", "when the mean loss gets too small (SAR)"),
    registry_entry<ResetRule, ConcentrationReset>("concentration",
                                                  "when the answers keep to few classes"),
};

constexpr RegistryEntry<Readout> kReadouts[] = {
    registry_entry<Readout, PriorReadout>(
        "prior", "logits times the smoothed mean of the batch's answers (ROID)"),
    registry_entry<Readout, LameReadout>("lame",
                                         "answers smoothed between neighbours in the batch (LAME)"),
    registry_entry<Readout, T3aReadout>("t3a",
                                        "prototypes of the classes in place of the head (T3A)"),
};

}  // namespace

std::span<const RegistryEntry<Teacher>> teacher_registry() {
  return kTeachers;
}

std::unique_ptr<Teacher> make_teacher(const Spec& spec) {
  return make_from_registry<Teacher>(teacher_registry(), spec);
}

std::span<const RegistryEntry<Perturbation>> perturbation_registry() {
  return kPerturbations;
}

std::unique_ptr<Perturbation> make_perturbation(const Spec& spec) {
  return make_from_registry<Perturbation>(perturbation_registry(), spec);
}

std::span<const RegistryEntry<Penalty>> penalty_registry() {
  return kPenalties;
}

std::unique_ptr<Penalty> make_penalty(const Spec& spec) {
  return make_from_registry<Penalty>(penalty_registry(), spec);
}

std::span<const RegistryEntry<Probe>> probe_registry() {
  return kProbes;
}

std::unique_ptr<Probe> make_probe(const Spec& spec) {
  return make_from_registry<Probe>(probe_registry(), spec);
}

std::span<const RegistryEntry<AfterStep>> after_step_registry() {
  return kAfterSteps;
}

std::unique_ptr<AfterStep> make_after_step(const Spec& spec) {
  return make_from_registry<AfterStep>(after_step_registry(), spec);
}

std::span<const RegistryEntry<ResetRule>> reset_rule_registry() {
  return kResetRules;
}

std::unique_ptr<ResetRule> make_reset_rule(const Spec& spec) {
  return make_from_registry<ResetRule>(reset_rule_registry(), spec);
}

std::span<const RegistryEntry<Store>> store_registry() {
  return kStores;
}

std::unique_ptr<Store> make_store(const Spec& spec) {
  return make_from_registry<Store>(store_registry(), spec);
}

std::span<const RegistryEntry<Drift>> drift_registry() {
  return kDrifts;
}

std::unique_ptr<Drift> make_drift(const Spec& spec) {
  return make_from_registry<Drift>(drift_registry(), spec);
}

std::span<const RegistryEntry<Readout>> readout_registry() {
  return kReadouts;
}

std::unique_ptr<Readout> make_readout(const Spec& spec) {
  return make_from_registry<Readout>(readout_registry(), spec);
}

}  // namespace gala
