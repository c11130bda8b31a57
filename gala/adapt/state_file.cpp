#include "gala/adapt/state_file.h"

#include "gala/base/error.h"
#include "gala/model/safetensors.h"

namespace gala {
namespace {

constexpr char kKey[] = "gala_state";

}  // namespace

void write_state(const std::filesystem::path& path, const State& state) {
  std::vector<NamedTensor> tensors;
  for (const auto& [name, tensor] : state.tensors) tensors.push_back({name, tensor});
  // Names from file systems need not be UTF-8.
  const std::string values =
      state.values.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  write_safetensors(path, tensors, {{kKey, values}});
}

State read_state(const std::filesystem::path& path) {
  const Safetensors file = read_safetensors(path);
  const auto found = file.metadata.find(kKey);
  if (found == file.metadata.end()) {
    throw FormatError(path.string(), "is a safetensors file but not a saved state");
  }
  State state;
  state.values = nlohmann::json::parse(found->second, nullptr, /*allow_exceptions=*/false);
  if (!state.values.is_object())
    throw FormatError(path.string(), "the state's values are not JSON");
  for (const auto& [name, tensor] : file.tensors) state.tensors[name] = tensor;
  return state;
}

}  // namespace gala
