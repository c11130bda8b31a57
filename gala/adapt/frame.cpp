#include "gala/adapt/frame.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

namespace gala {
namespace {

constexpr std::int64_t kNumbers = 2;  ///< loss, confident

}  // namespace

Facts::Facts(const LayerPartition& layers, std::int64_t images, std::int64_t classes,
             at::Device device) {
  const c10::NoGradGuard no_grad;
  const auto rows = static_cast<std::int64_t>(layers.size());
  const std::int64_t logits = images * classes;
  const std::int64_t size = kNumbers + rows * kSumColumns + (logits + 1) / 2;
  const auto doubles = at::TensorOptions(at::kDouble);
  device_ = at::zeros({size}, doubles.device(device));
  host_ = device.is_cpu() ? device_ : at::zeros({size}, doubles.pinned_memory(true));
  const auto logits_of = [&](const at::Tensor& memory) {
    return memory.slice(0, kNumbers + rows * kSumColumns)
        .view(at::kFloat)
        .slice(0, 0, logits)
        .view({images, classes});
  };
  loss_ = device_.select(0, 0);
  confident_ = device_.select(0, 1);
  table_ = device_.slice(0, kNumbers, kNumbers + rows * kSumColumns).view({rows, kSumColumns});
  logits_ = logits_of(device_);
  host_logits_ = logits_of(host_);
  for (const Layer& layer : layers.layers) sums_.push_back({.count = layer.count});
}

void Facts::note(const at::Tensor& logits, const LossTerms* terms, WorkQueue& queue) {
  const c10::NoGradGuard no_grad;
  logits_.copy_(logits);
  if (terms) {
    loss_.copy_(terms->value);
    confident_.copy_(terms->confident);
  }
  if (!device_.is_cpu()) queue.bring(device_, host_);
}

std::span<const LayerSums> Facts::sums() {
  const double* row = numbers() + kNumbers;
  for (LayerSums& sums : sums_) {
    sums = read_sums(row, sums.count);
    row += kSumColumns;
  }
  return sums_;
}

bool Frames::repeats(const Key& key) {
  if (seen_.size() >= kMostSeen) seen_.clear();
  return ++seen_[key] > 1 && frames_.size() <= kMost;
}

void Frames::forget_unrecorded() {
  std::erase_if(frames_, [](const auto& entry) { return !entry.second.work; });
}

}  // namespace gala
