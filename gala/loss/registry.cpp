#include "gala/loss/entropy.h"
#include "gala/loss/generalised_cross_entropy.h"
#include "gala/loss/information_maximisation.h"
#include "gala/loss/loss.h"
#include "gala/loss/pseudo_label.h"
#include "gala/loss/shot.h"
#include "gala/loss/soft_likelihood_ratio.h"

namespace gala {
namespace {

constexpr RegistryEntry<Loss> kLosses[] = {
    registry_entry<Loss, PseudoLabelLoss>(
        "pseudo_label", "cross-entropy against the network's own confident answers; head adapts"),
    registry_entry<Loss, ShotLoss>(
        "shot", "low entropy, high diversity, confident pseudo-labels; head frozen"),
    registry_entry<Loss, InformationMaximisationLoss>(
        "information_maximisation",
        "low entropy of each answer, high entropy of their mean; head frozen"),
    registry_entry<Loss, EntropyLoss>("entropy", "mean entropy of the answers (Tent's loss)"),
    registry_entry<Loss, GeneralisedCrossEntropyLoss>(
        "generalised_cross_entropy",
        "bounded cross-entropy against the network's own answers (RPL's loss)"),
    registry_entry<Loss, SoftLikelihoodRatioLoss>("soft_likelihood_ratio",
                                                  "log odds of the answers, clipped (ROID's loss)"),
};

}  // namespace

std::span<const RegistryEntry<Loss>> loss_registry() {
  return kLosses;
}

std::unique_ptr<Loss> make_loss(const Spec& spec) {
  return make_from_registry<Loss>(loss_registry(), spec);
}

}  // namespace gala
