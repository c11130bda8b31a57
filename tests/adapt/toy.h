#pragma once
#include <ATen/ATen.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gala/adapt/adapter.h"
#include "gala/base/random.h"

namespace gala {

/// A network small enough to adapt many times in a test.
inline std::unique_ptr<Model> toy_model(std::uint64_t seed = 1, const std::string& norm = "batch") {
  auto model = make_model(Spec::parse("wide_resnet:depth=10,width=1,classes=4"), seed);
  model->set_norm_mode(NormMode::parse(norm));
  return model;
}

/// Batch `number` of a drifting stream of noise, the same at every call.
inline at::Tensor toy_images(std::int64_t number, std::int64_t count = 4, std::int64_t side = 8) {
  at::Tensor images = at::empty({count, 3, side, side});
  Random random(7, "toy images", {static_cast<std::uint64_t>(number)});
  float* data = images.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < images.numel(); ++i) {
    data[i] = static_cast<float>(0.5 + 0.3 * random.normal() + 0.01 * static_cast<double>(number));
  }
  return images;
}

inline bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.detach().contiguous(), y = b.detach().contiguous();
  return x.sizes() == y.sizes() && x.scalar_type() == y.scalar_type() &&
         std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

inline at::Tensor parameters_of(const Adapter& adapter) {
  return adapter.parameters().values().clone();
}

inline MethodOptions toy_options(const std::string& select) {
  return {.loss = "entropy", .select = select, .guard = "off"};
}

}  // namespace gala
