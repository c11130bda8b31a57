#include "gala/loss/consistency.h"
#include "gala/loss/entropy.h"
#include "gala/loss/generalised_cross_entropy.h"
#include "gala/loss/information_maximisation.h"
#include "gala/loss/loss.h"
#include "gala/loss/marginal_entropy.h"
#include "gala/loss/pseudo_label.h"
#include "gala/loss/shot.h"
#include "gala/loss/soft_likelihood_ratio.h"
#include "gala/loss/source_cross_entropy.h"
#include "gala/loss/teacher_cross_entropy.h"

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
    registry_entry<Loss, ConsistencyLoss>(
        "consistency", "the answer to the image seen otherwise is to be the same (--view)"),
    registry_entry<Loss, TeacherCrossEntropyLoss>(
        "teacher_cross_entropy", "cross-entropy against the answers of a teacher (--teacher)"),
    registry_entry<Loss, SourceCrossEntropyLoss>(
        "source_cross_entropy", "cross-entropy against the answers of the source model (PeTTA)"),
    registry_entry<Loss, MarginalEntropyLoss>(
        "marginal_entropy",
        "entropy of the mean answer to several looks at an image (MEMO; --view)"),
};

}  // namespace

std::span<const RegistryEntry<Loss>> loss_registry() {
  return kLosses;
}

}  // namespace gala
