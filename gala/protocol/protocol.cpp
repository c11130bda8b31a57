#include "gala/protocol/protocol.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "gala/protocol/continual.h"
#include "gala/protocol/domainbed.h"
#include "gala/protocol/tiny_domainbed.h"

namespace gala {
namespace {

/// The registry line of a protocol, and those of its options that name folders.
struct ProtocolLine {
  RegistryEntry<Protocol> entry;
  std::span<const std::string_view> paths;
};

template <class Method>
constexpr ProtocolLine protocol_entry(std::string_view name, std::string_view summary) {
  return {registry_entry<Protocol, Method>(name, summary), Method::Options::kPaths};
}

constexpr auto kLines = std::to_array<ProtocolLine>({
    protocol_entry<ContinualProtocol>(
        "continual",
        "CIFAR-10-C, CIFAR-100-C or ImageNet-C, corruptions one after the other without a reset"),
    protocol_entry<DomainBedProtocol>(
        "domainbed", "one environment of PACS, VLCS, TerraIncognita or OfficeHome, as T3A runs it"),
    protocol_entry<TinyDomainBedProtocol>(
        "tiny_domainbed", "one of six shifts of three DomainBed sets, block by block"),
});

constexpr auto kProtocols = [] {
  std::array<RegistryEntry<Protocol>, kLines.size()> entries{};
  for (std::size_t i = 0; i < entries.size(); ++i) entries[i] = kLines[i].entry;
  return entries;
}();

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

std::span<const std::string_view> protocol_paths(std::string_view protocol) {
  for (const ProtocolLine& line : kLines) {
    if (line.entry.name == protocol) return line.paths;
  }
  return {};
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
