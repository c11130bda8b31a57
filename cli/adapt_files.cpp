#include "cli/adapt_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "gala/base/error.h"
#include "gala/base/file.h"

namespace gala {
namespace {

/// A flag and the file it names; an empty path names none.
using FlagFile = std::pair<std::string, std::string>;

/// True when both name one file, however they are spelled. Devices such as /dev/null are none.
bool same_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  if (std::filesystem::equivalent(a, b, ignored)) {
    return std::filesystem::is_regular_file(a, ignored);
  }
  if (std::filesystem::exists(a, ignored)) return false;
  // Absolute first: of a relative path without an existing part nothing would be resolved.
  const auto place = [](const std::string& path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path));
  };
  return place(a) == place(b);
}

std::vector<FlagFile> inputs_of(const AdaptFlags& flags, const DataSource& source) {
  std::vector<FlagFile> inputs = {{"--weights", flags.model.weights}, {"--resume", flags.resume}};
  for (const auto& [key, value] : source.spec.options) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(value, ignored))
      inputs.push_back({"--data " + key, value});
  }
  return inputs;
}

}  // namespace

void check_outputs(const AdaptFlags& flags, const GuardOptions& guard, const DataSource& source) {
  const std::vector<FlagFile> outputs = {{"--trace", flags.trace},
                                         {"--predictions", flags.predictions},
                                         {"--save-weights", flags.save_weights},
                                         {"--save-state", flags.save_state},
                                         {"--guard events", guard.events}};
  const std::vector<FlagFile> inputs = inputs_of(flags, source);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto& [flag, path] = outputs[i];
    if (path.empty()) continue;
    require_writable(path, flag);
    for (std::size_t j = 0; j < i; ++j) {
      const auto& [other, other_path] = outputs[j];
      if (!other_path.empty() && same_file(path, other_path)) {
        fail<ConfigError>("{} and {} both name {}", other, flag, path);
      }
    }
    for (const auto& [input, input_path] : inputs) {
      const bool takes_its_place = flag == "--save-state" && input == "--resume";
      if (!takes_its_place && !input_path.empty() && same_file(path, input_path)) {
        fail<ConfigError>("{} {}: would overwrite what {} reads", flag, path, input);
      }
    }
  }
}

}  // namespace gala
