#include "gala/base/registry.h"

#include <iterator>
#include <utility>

#include "gala/base/error.h"

namespace gala {
namespace {

/// A value in the spelling of its type.
std::string respelled(const std::string& text, const OptionInfo& option, const Spec& spec,
                      std::string_view kind) {
  const auto as = [&]<class T>(T value) {
    if (!parse_value(text, value)) {
      fail<ConfigError>("{} {}: option {} cannot be \"{}\" (expected {})", kind, spec.name,
                        option.name, text, option.type);
    }
    return format_value(value);
  };
  if (option.type == accepted_values<double>()) return as(double{});
  if (option.type == accepted_values<std::int64_t>()) return as(std::int64_t{});
  if (option.type == accepted_values<bool>()) return as(bool{});
  return text;
}

/// Options that came after the first records, by method: at their default a spec does not name them, so
/// that runs keep their keys.
constexpr std::pair<std::string_view, std::string_view> kLater[] = {
    {"random", "draws"}, {"entropy", "below"}, {"norm_affine", "skip"}, {"paced", "share"},
    {"paced", "calm"},   {"law", "carried"},   {"continual", "visits"}, {"correlated", "visits"}};

bool stays_unwritten(const MethodInfo& method, const OptionInfo& option, const std::string& value) {
  const std::pair<std::string_view, std::string_view> name{method.name, option.name};
  return value == option.default_value &&
         std::find(std::begin(kLater), std::end(kLater), name) != std::end(kLater);
}

Spec written_out(const Spec& given, const MethodInfo& method, std::string_view kind) {
  std::vector<std::string> names;
  for (const OptionInfo& option : method.options) names.push_back(option.name);
  const Spec spec = with_our_names(given, names, kind);
  for (const auto& [name, value] : spec.options) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      fail<ConfigError>("{} {} has no option \"{}\"{}", kind, spec.name, name,
                        suggestion(name, names));
    }
  }
  Spec whole{spec.name, {}};
  for (const OptionInfo& option : method.options) {
    const std::string* text = spec.find(option.name);
    std::string value = text ? respelled(*text, option, spec, kind) : option.default_value;
    if (stays_unwritten(method, option, value)) continue;
    whole.options.emplace_back(option.name, std::move(value));
  }
  return whole;
}

}  // namespace

Spec written_out(const Spec& spec, const std::vector<MethodInfo>& known, std::string_view kind) {
  std::vector<std::string> names;
  for (const MethodInfo& method : known) {
    if (method.name == spec.name) return written_out(spec, method, kind);
    names.emplace_back(method.name);
  }
  fail<ConfigError>("unknown {} \"{}\"{}", kind, spec.name, suggestion(spec.name, names));
}

}  // namespace gala
