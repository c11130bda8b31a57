#include "gala/adapt/frame.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

namespace gala {

// In host memory, in doubles: loss, confident and moved as floats, the table, what was probed, the logits.
Facts::Facts(const LayerPartition& layers, std::int64_t images, std::int64_t classes,
             at::Device device) {
  const c10::NoGradGuard no_grad;
  constexpr std::int64_t kHead = 2;
  const auto rows = static_cast<std::int64_t>(layers.size());
  const std::int64_t logits = images * classes, behind_table = kHead + rows * kSumColumns;
  const std::int64_t behind_probed = behind_table + rows;
  const auto doubles = at::TensorOptions(at::kDouble);
  const at::Tensor host =
      at::zeros({behind_probed + (logits + 1) / 2}, doubles.pinned_memory(!device.is_cpu()));
  const at::Tensor floats = host.view(at::kFloat);
  loss_ = floats.select(0, 0);
  confident_ = floats.select(0, 1);
  moved_ = floats.select(0, 2).fill_(1);
  probed_ = host.slice(0, behind_table, behind_probed);
  logits_ = floats.slice(0, 2 * behind_probed, 2 * behind_probed + logits).view({images, classes});
  host_table_ = host.slice(0, kHead, behind_table).view({rows, kSumColumns});
  table_ = device.is_cpu() ? host_table_ : at::zeros_like(host_table_, doubles.device(device));
  number_ = at::zeros({}, at::TensorOptions(at::kLong).pinned_memory(!device.is_cpu()));
  for (const Layer& layer : layers.layers) sums_.push_back({.count = layer.count});
}

void Facts::note(const at::Tensor& logits, const LossTerms* terms, const at::Tensor& probed,
                 const at::Tensor& moved, WorkQueue& queue) {
  const c10::NoGradGuard no_grad;
  const auto plain = [&](const at::Tensor& values) {
    return values.to(table_.device(), at::kFloat).contiguous();
  };
  std::array<WorkQueue::Brought, WorkQueue::kMostBrought> parts;
  std::size_t count = 0;
  parts[count++] = {plain(logits), logits_};
  if (terms) {
    parts[count++] = {plain(terms->value), loss_};
    parts[count++] = {plain(terms->confident), confident_};
    if (!table_.is_same(host_table_)) parts[count++] = {table_, host_table_};
  }
  if (probed.defined()) parts[count++] = {probed.contiguous(), probed_};
  if (moved.defined()) parts[count++] = {plain(moved), moved_};
  queue.bring(std::span(parts).first(count));
}

void Facts::note_number(const at::Tensor& number, WorkQueue& queue) {
  const std::array<WorkQueue::Brought, 1> part{{{number, number_}}};
  queue.bring(part);
}

std::span<const LayerSums> Facts::sums() {
  const double* row = host_table_.const_data_ptr<double>();
  for (LayerSums& sums : sums_) {
    sums = read_sums(row, sums.count);
    row += kSumColumns;
  }
  return sums_;
}

}  // namespace gala
