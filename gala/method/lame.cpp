#include "gala/method/lame.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "gala/method/ranges.h"

namespace gala {
namespace {

at::Tensor affinity(const at::Tensor& features, std::int64_t neighbours) {
  const at::Tensor unit = features / features.norm(2, {1}, /*keepdim=*/true).clamp_min(1e-12);
  const at::Tensor distance =
      at::cdist(unit, unit, 2, /*compute_mode=*/2);  // exact, not by products
  const std::int64_t kth = std::min(neighbours, features.size(0));
  const at::Tensor sigma =
      std::get<0>(distance.topk(kth, /*dim=*/1, /*largest=*/false)).select(1, kth - 1).mean();
  return (-(distance * distance) / (2 * sigma * sigma).clamp_min(1e-30)).exp();
}

}  // namespace

LameReadout::LameReadout(const Options& options) : options_(options) {
  check_ranges(method_ranges(), "readout lame", options);
}

at::Tensor LameReadout::correct(const Output& output) {
  const at::Tensor sound =
      at::isfinite(output.logits).all(1).logical_and(at::isfinite(output.features).all(1));
  const at::Tensor rows = sound.nonzero().squeeze(1);
  if (rows.size(0) == 0) return output.logits;
  const at::Tensor p = at::softmax(output.logits.index_select(0, rows).to(at::kFloat), 1);
  const at::Tensor kernel =
      affinity(output.features.index_select(0, rows).to(at::kFloat), options_.neighbours);
  const at::Tensor log_p = (p + 1e-10).log();
  at::Tensor y = at::softmax(log_p, 1);
  double before = std::numeric_limits<double>::infinity();
  for (std::int64_t step = 0; step < options_.steps; ++step) {
    const at::Tensor pairs = at::matmul(kernel, y);
    y = at::softmax(log_p + pairs, 1);
    const double energy = (y * (y.clamp_min(1e-20).log() - log_p - pairs)).sum().item<double>();
    if (step > 1 && std::abs(energy - before) <= 1e-8 * std::abs(before)) break;
    before = energy;
  }
  return output.logits.index_copy(0, rows, y.to(output.logits.scalar_type()));
}

}  // namespace gala
