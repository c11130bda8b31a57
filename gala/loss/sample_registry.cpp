#include "gala/loss/age.h"
#include "gala/loss/certain.h"
#include "gala/loss/deyo.h"
#include "gala/loss/diverse_certain.h"
#include "gala/loss/eta.h"
#include "gala/loss/sample_rule.h"

namespace gala {
namespace {

constexpr RegistryEntry<SampleRule> kSampleRules[] = {
    registry_entry<SampleRule, EtaRule>(
        "eta", "images the network is sure of and that are not like earlier ones (ETA, EATA)"),
    registry_entry<SampleRule, DiverseCertainRule>(
        "diverse_certain", "by diversity and certainty; the less diverse half is left out (ROID)"),
    registry_entry<SampleRule, CertainRule>("certain", "images of little entropy, all alike (SAR)"),
    registry_entry<SampleRule, DeyoRule>(
        "deyo", "images of little entropy whose label needs their shape (DeYO; --view patches)"),
    registry_entry<SampleRule, AgeRule>("age",
                                        "what came long ago counts less (RoTTA; --store balanced)"),
};

}  // namespace

std::span<const RegistryEntry<SampleRule>> sample_rule_registry() {
  return kSampleRules;
}

std::unique_ptr<SampleRule> make_sample_rule(const Spec& spec) {
  return make_from_registry<SampleRule>(sample_rule_registry(), spec);
}

}  // namespace gala
