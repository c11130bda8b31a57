#pragma once
#include <c10/core/Device.h>

#include <array>
#include <string_view>

namespace gala {

/// How convolutions and matrix products are computed. Parameters, statistics, losses and everything
/// that selects a layer are float32 (sums double) in all of them.
enum class Precision {
  kFloat32,
  kTf32,  ///< products of float32 numbers rounded to 11 bits, on GPUs that have them; else float32
  kBf16   ///< stages run in bfloat16; the head, which makes features into logits, in float32
};
constexpr std::array<std::string_view, 3> enum_names(Precision) {
  return {"float32", "tf32", "bf16"};
}

/// Allows TF32 products in this process, or forbids them: LibTorch has one switch for all threads.
void allow_tf32(Precision precision);

/// Asks LibTorch, in this process, for algorithms that give the same bits every time, or for the
/// quickest ones, which on a GPU are found by trial at the first batch of a shape. Before the first
/// work on a GPU.
void set_deterministic(bool deterministic);

/// While it lives, operations of this thread run in the precision asked for (bfloat16 through
/// LibTorch's autocast); for the others it does nothing.
class PrecisionScope {
 public:
  PrecisionScope(Precision precision, c10::DeviceType device);
  ~PrecisionScope();
  PrecisionScope(const PrecisionScope&) = delete;
  PrecisionScope& operator=(const PrecisionScope&) = delete;

 private:
  c10::DeviceType device_;
  bool active_;
};

}  // namespace gala
