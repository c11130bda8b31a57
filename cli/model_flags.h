#pragma once
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "gala/base/error.h"
#include "gala/base/options.h"
#include "gala/model/model.h"

namespace gala {

/// The device a --device flag names. Throws ConfigError when it does not exist here.
at::Device parse_device(const std::string& text);

/// The value of an enum that a flag names; throws ConfigError.
template <class T>
T parse_flag(std::string_view flag, const std::string& text) {
  T value{};
  if (!parse_value(text, value)) {
    fail<ConfigError>("{} {}: unknown (expected {})", flag, text, accepted_values<T>());
  }
  return value;
}

/// The flags that name a network, shared by the commands that need one.
struct ModelFlags {
  std::string model;
  std::string weights;
  std::string norm = "source";
  std::string device = "cpu";
  std::string precision = "float32";
  std::string layout = "auto";
  std::int64_t seed = 0;

  /// Adds --model and --weights.
  void add_to(CLI::App& command);
  /// Makes the network, on its device, with weights, norm mode, precision and layout (the fastest
  /// one for batches of this size, where that is asked). Says in `warnings` when weights or
  /// preprocessing are missing. Throws ConfigError and FormatError.
  std::unique_ptr<Model> open(std::vector<std::string>& warnings,
                              std::int64_t batch_size = 1) const;
};

}  // namespace gala
