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
};

}  // namespace

std::span<const RegistryEntry<SampleRule>> sample_rule_registry() {
  return kSampleRules;
}

std::unique_ptr<SampleRule> make_sample_rule(const Spec& spec) {
  return make_from_registry<SampleRule>(sample_rule_registry(), spec);
}

}  // namespace gala
