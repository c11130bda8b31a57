// Weight files and states.
#include <ATen/ATen.h>

#include "fuzz/scratch.h"
#include "gala/adapt/state_file.h"
#include "gala/base/json.h"
#include "gala/model/safetensors.h"
#include "gala/model/torch_checkpoint.h"
#include "tests/model/zip_builder.h"

namespace gala::fuzz {
namespace {

/// Looks at every value of the smaller tensors, so that one beyond its memory shows.
void look_at(const std::vector<NamedTensor>& tensors) {
  constexpr std::int64_t kMost = 1 << 16;
  std::int64_t seen = 0;
  for (const NamedTensor& item : tensors) {
    require(!item.name.empty() || item.tensor.defined(), "a tensor is missing");
    if (item.tensor.numel() > kMost - seen) continue;
    seen += item.tensor.numel();
    item.tensor.to(at::kDouble).sum();
  }
}

void read_checkpoint(const Scratch& scratch, std::string_view bytes) {
  const auto path = scratch.write("weights.pt", bytes);
  accepted([&] { look_at(read_torch_checkpoint(path)); });
}

}  // namespace

void safetensors(Bytes bytes) {
  static const Scratch scratch;
  const auto path = scratch.write("weights.safetensors", as_text(bytes));
  accepted([&] {
    const Safetensors file = read_safetensors(path);
    look_at(file.tensors);
    require(read_safetensors_metadata(path) == file.metadata, "other metadata");
  });
}

void checkpoint(Bytes bytes) {
  static const Scratch scratch;
  read_checkpoint(scratch, as_text(bytes));
}

/// The pickle of a checkpoint that has two storages of 64 bytes.
void pickle(Bytes bytes) {
  static const Scratch scratch;
  gala::testing::ZipBuilder file;
  file.add("net/data.pkl", as_text(bytes)).add("net/byteorder", "little");
  for (const char* name : {"net/data/0", "net/data/1"}) file.add(name, std::string(64, '\1'));
  read_checkpoint(scratch, file.finish());
}

/// A state file; and the values of a state, which are written and must come back.
void state(Bytes bytes) {
  static const Scratch scratch;
  const auto path = scratch.write("state.safetensors", as_text(bytes));
  accepted([&] { read_state(path); });
  State state;
  state.values = try_parse_json(as_text(bytes));
  if (!state.values.is_object()) return;
  state.tensors["moment1/fc.bias"] = at::ones({3});
  write_state(path, state);
  const State again = read_state(path);
  require(again.values == state.values, "a state does not come back");
  require(again.tensors.at("moment1/fc.bias").equal(at::ones({3})), "a tensor does not come back");
}

}  // namespace gala::fuzz
