#pragma once
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "gala/base/options.h"

namespace gala {

/// One way to make an `Interface`: a line in an explicit, constant list.
template <class Interface, class... Context>
struct RegistryEntry {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<Interface> (*make)(const Spec&, Context...);
  std::vector<OptionInfo> (*options)();
};

/// The line for `Method`, which is made from `Method::Options` (and from the context if it wants it). With
/// GALA_NAMES_ONLY it is only named: the Python package lists these parts and has them in Python.
template <class Interface, class Method, class... Context>
constexpr RegistryEntry<Interface, Context...> registry_entry(std::string_view name,
                                                              std::string_view summary) {
  using Options = typename Method::Options;
#ifdef GALA_NAMES_ONLY
  return {name, summary, nullptr, &describe_options<Options>};
#else
  return {name, summary,
          [](const Spec& spec, [[maybe_unused]] Context... context) -> std::unique_ptr<Interface> {
            const Options options = parse_options<Options>(spec, Interface::kKind);
            if constexpr (std::constructible_from<Method, Options, Context...>) {
              return std::make_unique<Method>(options, context...);
            } else {
              return std::make_unique<Method>(options);
            }
          },
          &describe_options<Options>};
#endif
}

/// Makes what the spec names; an unknown name fails with the known ones and the nearest.
template <class Interface, class... Context>
std::unique_ptr<Interface> make_from_registry(
    std::span<const RegistryEntry<Interface, Context...>> entries, const Spec& spec,
    Context... context) {
  std::vector<std::string> known;
  for (const auto& entry : entries) {
    if (entry.name == spec.name) return entry.make(spec, context...);
    known.emplace_back(entry.name);
  }
  fail<ConfigError>("unknown {} \"{}\"{}", Interface::kKind, spec.name,
                    suggestion(spec.name, known));
}

/// A registry entry without its types, for listings.
struct MethodInfo {
  std::string_view name;
  std::string_view summary;
  std::vector<OptionInfo> options;
};

/// The spec with every option of its kind written out and numbers in one spelling; options that came after
/// the first records only where they are not at their default. Throws ConfigError for an unknown name,
/// option or value.
Spec written_out(const Spec& spec, const std::vector<MethodInfo>& known, std::string_view kind);

template <class Interface, class... Context>
std::vector<MethodInfo> describe_registry(
    std::span<const RegistryEntry<Interface, Context...>> entries) {
  std::vector<MethodInfo> infos;
  for (const auto& entry : entries) infos.push_back({entry.name, entry.summary, entry.options()});
  return infos;
}

}  // namespace gala
