#include "gala/view/augment.h"
#include "gala/view/augmix.h"
#include "gala/view/flip.h"
#include "gala/view/patches.h"
#include "gala/view/view.h"

namespace gala {
namespace {

constexpr RegistryEntry<View> kViews[] = {
    registry_entry<View, AugmentView>(
        "augment",
        "other colours, turned, shifted, scaled, blurred, mirrored, with noise (CoTTA's)"),
    registry_entry<View, AugmixView>(
        "augmix", "chains of changes of PIL's, mixed: contrast, levels, turns, shears (MEMO's)"),
    registry_entry<View, PatchesView>("patches", "every image cut into patches, shuffled (DeYO's)"),
    registry_entry<View, FlipView>("flip", "every image mirrored left to right"),
};

}  // namespace

std::span<const RegistryEntry<View>> view_registry() {
  return kViews;
}

std::unique_ptr<View> make_view(const Spec& spec) {
  return make_from_registry<View>(view_registry(), spec);
}

}  // namespace gala
