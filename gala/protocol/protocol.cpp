#include "gala/protocol/protocol.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "gala/protocol/continual.h"
#include "gala/protocol/domainbed.h"
#include "gala/protocol/tiny_domainbed.h"

namespace gala {
namespace {

constexpr auto kProtocols = std::to_array<RegistryEntry<Protocol>>({
    registry_entry<Protocol, ContinualProtocol>(
        "continual", "CIFAR-10-C or CIFAR-100-C, corruptions one after the other without a reset"),
    registry_entry<Protocol, DomainBedProtocol>(
        "domainbed", "one environment of PACS, VLCS, TerraIncognita or OfficeHome, as T3A runs it"),
    registry_entry<Protocol, TinyDomainBedProtocol>(
        "tiny_domainbed", "one of six shifts of three DomainBed sets, block by block"),
});

}  // namespace

std::string TestBed::hash() const {
  Sha256 hash;
  hash.update(content_hash(target));
  for (const auto* part : {&held_out, &source}) {
    hash.update(part->has_value() ? content_hash(**part) : "none");
  }
  return hash.hex();
}

std::span<const RegistryEntry<Protocol>> protocol_registry() {
  return kProtocols;
}

std::unique_ptr<Protocol> make_protocol(const Spec& spec) {
  return make_from_registry(protocol_registry(), spec);
}

Spec without_folders(Spec spec) {
  std::erase_if(spec.options, [](const auto& option) {
    return option.first == "path" || option.first == "root" || option.first == "clean" ||
           option.first == "frost";
  });
  return spec;
}

void limit_images(DataSource& source, std::int64_t images) {
  if (images < 0) fail<ConfigError>("images cannot be {} (expected 0 or more)", images);
  if (images == 0) return;
  for (Domain& domain : source.domains) {
    std::vector<std::int64_t> first(
        static_cast<std::size_t>(std::min(images, domain.data->size())));
    std::iota(first.begin(), first.end(), std::int64_t{0});
    domain.data = std::make_shared<Subset>(domain.data, std::move(first));
  }
}

}  // namespace gala
