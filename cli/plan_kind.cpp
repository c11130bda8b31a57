#include "cli/plan_kind.h"

#include <algorithm>
#include <initializer_list>
#include <optional>

#include "gala/base/error.h"
#include "gala/base/input_file.h"
#include "gala/base/toml.h"

namespace gala {
namespace {

/// By the sections that only one of the two has.
std::optional<PlanKind> kind_of(const toml::table& plan) {
  const auto has_any = [&](std::initializer_list<const char*> sections) {
    return std::any_of(sections.begin(), sections.end(),
                       [&](const char* name) { return plan.contains(name); });
  };
  const bool experiment = has_any({"plan", "run", "axes", "case", "row"});
  const bool training = has_any({"parameters", "model", "data", "train", "output"});
  if (experiment == training) return std::nullopt;
  return experiment ? PlanKind::kExperiment : PlanKind::kTraining;
}

std::optional<PlanKind> kind_of_file(const std::filesystem::path& path) {
  std::error_code problem;
  if (!std::filesystem::is_regular_file(path, problem)) return std::nullopt;  // pipes are read once
  try {
    return kind_of(toml::parse(std::string_view(read_text(path))));
  } catch (const toml::parse_error&) {
    return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

void refuse_other_plan(const std::filesystem::path& path, PlanKind wanted) {
  const std::optional<PlanKind> kind = kind_of_file(path);
  if (!kind || *kind == wanted) return;
  const bool training = *kind == PlanKind::kTraining;
  fail<ConfigError>("{}: this is a plan {}: gala {} {}", path.string(),
                    training ? "for training" : "of experiments", training ? "train" : "run",
                    path.string());
}

}  // namespace gala
