#pragma once
#include <cmath>
#include <memory>

#include "gala/adapt/adapter.h"
#include "gala/base/random.h"
#include "tests/cuda/device.h"

namespace gala {

inline constexpr const char* kNetwork = "wide_resnet:depth=16,width=2,classes=10";

/// The images of a seed, [count, 3, 32, 32], on the host.
inline at::Tensor images(std::int64_t count, std::uint64_t seed) {
  Random random(seed, "images");
  at::Tensor result = at::empty({count, 3, 32, 32}, at::kFloat);
  float* data = result.mutable_data_ptr<float>();
  // A slow wave with noise: something a network can be confident about.
  for (std::int64_t i = 0; i < result.numel(); ++i) {
    data[i] = static_cast<float>(0.5 + 0.3 * std::sin(static_cast<double>(i % 1024) / 50) +
                                 0.2 * random.normal());
  }
  return result;
}

/// Adapters on a GPU, in full precision and deterministic.
class CudaAdapter : public OnCuda {
 protected:
  void SetUp() override {
    OnCuda::SetUp();
    if (IsSkipped()) return;
    set_deterministic(true);
    allow_tf32(Precision::kFloat32);
  }
  void TearDown() override { set_deterministic(false); }

  static std::unique_ptr<Model> model(const char* norm, at::Device device = at::kCUDA,
                                      const char* spec = kNetwork) {
    auto result = make_model(Spec::parse(spec), 5);
    result->to(device);
    result->set_norm_mode(NormMode::parse(norm));
    return result;
  }
};

/// Whether two states are the same bit for bit.
inline bool equal(const State& a, const State& b) {
  for (const auto& [name, tensor] : a.tensors) {
    if (!at::equal(tensor, b.tensors.at(name))) return false;
  }
  return a.tensors.size() == b.tensors.size() && a.values.at("totals") == b.values.at("totals");
}

}  // namespace gala
