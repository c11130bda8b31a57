#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace gala {

/// What a part needs to go on where it stopped: tensors by name, in contiguous order and on the CPU,
/// and plain values. Every part writes under names that begin with its own.
struct State {
  std::map<std::string, at::Tensor> tensors;
  nlohmann::json values = nlohmann::json::object();
};

}  // namespace gala
