#include "gala/adapt/state_file.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "gala/base/error.h"
#include "gala/base/hash.h"
#include "gala/base/json.h"
#include "gala/model/safetensors.h"

namespace gala {
namespace {

constexpr char kKey[] = "gala_state";
constexpr char kChecksum[] = "gala_checksum";

/// SHA-256 over the values as text, then over names, types, shapes and bytes of the tensors. Each
/// tensor has a digest of its own, so that they can be computed side by side.
std::string checksum(const std::string& values, const std::map<std::string, at::Tensor>& tensors) {
  std::vector<std::pair<std::string, at::Tensor>> parts(tensors.begin(), tensors.end());
  std::vector<std::string> digests(parts.size());
  at::parallel_for(
      0, static_cast<std::int64_t>(parts.size()), 1, [&](std::int64_t begin, std::int64_t end) {
        for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
          const at::Tensor plain = parts[i].second.detach().cpu().contiguous();
          Sha256 hash;
          hash.update(plain.const_data_ptr(), plain.nbytes());
          digests[i] = hash.hex();
        }
      });
  Sha256 all;
  all.update(values);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& [name, tensor] = parts[i];
    all.update(fmt::format("\n{} {} [{}] {}", name, c10::toString(tensor.scalar_type()),
                           fmt::join(tensor.sizes(), ","), digests[i]));
  }
  return all.hex();
}

}  // namespace

void write_state(const std::filesystem::path& path, const State& state) {
  std::vector<NamedTensor> tensors;
  for (const auto& [name, tensor] : state.tensors) tensors.push_back({name, tensor});
  // Names from file systems need not be UTF-8.
  const std::string values =
      state.values.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  write_safetensors(path, tensors, {{kKey, values}, {kChecksum, checksum(values, state.tensors)}});
}

State read_state(const std::filesystem::path& path) {
  const Safetensors file = read_safetensors(path);
  const auto found = file.metadata.find(kKey);
  if (found == file.metadata.end()) {
    throw FormatError(path.string(), "is a safetensors file but not a saved state");
  }
  const auto sum = file.metadata.find(kChecksum);
  if (sum == file.metadata.end()) {
    throw FormatError(path.string(),
                      "has no checksum: it was saved by an older version of gala, which can go on "
                      "from it; this one cannot (begin anew)");
  }
  State state;
  for (const auto& [name, tensor] : file.tensors) state.tensors[name] = tensor;
  if (checksum(found->second, state.tensors) != sum->second) {
    throw FormatError(path.string(),
                      "is not as it was saved (its checksum is another): it was damaged or edited");
  }
  state.values = try_parse_json(found->second);
  if (!state.values.is_object())
    throw FormatError(path.string(), "the state's values are not JSON");
  return state;
}

}  // namespace gala
