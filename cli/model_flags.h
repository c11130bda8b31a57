#pragma once
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "gala/model/model.h"

namespace gala {

/// The device a --device flag names. Throws ConfigError when it does not exist here.
at::Device parse_device(const std::string& text);

/// The flags that name a network, shared by the commands that need one.
struct ModelFlags {
  std::string model;
  std::string weights;
  std::string norm = "source";
  std::string device = "cpu";
  std::int64_t seed = 0;

  /// Adds --model and --weights.
  void add_to(CLI::App& command);
  /// Makes the network, on its device, with weights and norm mode. Says in `warnings` when weights
  /// or preprocessing are missing. Throws ConfigError and FormatError.
  std::unique_ptr<Model> open(std::vector<std::string>& warnings) const;
};

}  // namespace gala
