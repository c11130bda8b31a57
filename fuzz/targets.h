#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

// One small target for each format that gala reads. A target hands bytes to the reader as the program
// would, and looks at what comes out. What the reader refuses with a gala::Error is in order; anything
// else - another exception, a crash, a leak, a hang, too much memory - is a finding. Sums that protect a
// file against damage (of zip entries, PNG chunks, states) are made right first: they stop accidents,
// and nobody who means harm.
namespace gala::fuzz {

using Bytes = std::span<const std::uint8_t>;
using Target = void(Bytes);

// Without LibTorch.
Target spec, plan, train_plan, record, trace, idx, cifar, npy, png, jpeg, zip;
// With it.
Target safetensors, pickle, checkpoint, state, exported, exported_graph;

}  // namespace gala::fuzz
