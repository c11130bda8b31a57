#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>

#include "gala/adapt/adapter.h"
#include "gala/tensor/norms.h"

namespace gala {

// What watches over the method: the guard, and the way back.

BatchHealth Adapter::look_at_rows(const at::Tensor& host_logits) {
  const at::Tensor rows = host_logits.contiguous();
  return look_at(rows.const_data_ptr<float>(), rows.size(0), rows.size(1));
}

/// `health` is that of the adapted model, in shadow mode too.
void Adapter::watch(Answer& answer, BatchHealth health) {
  if (guard_.action() == GuardAction::kOff) return;
  for (const StepRecord& step : answer.steps) {
    double applied = 0;
    for (const LayerRecord& layer : step.layers) {
      applied += std::pow(layer.weight * layer.update_norm, 2);
    }
    health.update_norm = std::max(health.update_norm, std::sqrt(applied));
    health.refused += step.refused;
    ++health.steps;
  }
  // float32 has 24 bits: beside such an update what was there before is rounded away. Parameters that
  // were always moved less than that do not overflow either.
  constexpr double kDrowns = 1 << 24;
  health.lost = health.update_norm > kDrowns * std::max(source_norm_, 1.0);
  if (!guard_.observe(health)) return;
  answer.health = judge();
  answer.health->batch = totals_.batches;
  if (!answer.health->collapsed) {
    if (keeps_healthy()) healthy_ = take_snapshot();
    return;
  }
  if (guard_.action() == GuardAction::kStop) stopped_ = true;
  if (guard_.action() != GuardAction::kRollback) return;
  begin_at(keeps_healthy() ? healthy_ : source_);
  guard_.forget(/*all=*/false);
  ++totals_.rollbacks;
}

/// On a GPU the source lies on the other side of the bus. The way the parameters went bounds how far
/// they can be from it; only where that bound is too large the distance itself is looked at.
HealthEvent Adapter::judge() {
  if (!arena_->values().is_cpu()) {
    double square = 0;
    for (const double way : travelled_) square += way * way;
    const double bound = std::sqrt(square) / source_norm_;
    if (bound <= guard_.options().displacement) return guard_.judge(bound, /*exact=*/false);
  }
  return guard_.judge(relative_displacement(), /*exact=*/true);
}

bool Adapter::keeps_healthy() const {
  return guard_.action() == GuardAction::kRollback &&
         guard_.options().to == RollbackTarget::kHealthy;
}

Adapter::Snapshot Adapter::take_snapshot() const {
  const auto pinned = at::TensorOptions(at::kFloat).pinned_memory(!arena_->values().is_cpu());
  Snapshot snapshot{at::empty({arena_->size()}, pinned).copy_(arena_->values()), {}, travelled_};
  for (const Statistic& each : model_.statistics()) {
    snapshot.buffers.push_back(each.value->to(at::kCPU, /*non_blocking=*/false, /*copy=*/true));
  }
  return snapshot;
}

void Adapter::restore(const Snapshot& snapshot) {
  const c10::NoGradGuard no_grad;
  arena_->values().copy_(snapshot.values);
  std::size_t i = 0;
  for (const Statistic& each : model_.statistics()) each.value->copy_(snapshot.buffers[i++]);
  travelled_ = snapshot.travelled;
}

at::Tensor Adapter::difference_from_source() const {
  const c10::NoGradGuard no_grad;
  const at::Device device = arena_->values().device();
  // On the CPU this must not change the source itself.
  return source_.values.to(device, /*non_blocking=*/false, /*copy=*/true).sub_(arena_->values());
}

std::vector<double> Adapter::net_displacement() const {
  const at::Tensor difference = difference_from_source();
  std::vector<double> norms;
  for (const Layer& layer : layers().layers) {
    double square = 0;
    for (const std::size_t t : layer.tensors) square += squared_norm(arena_->view(difference, t));
    norms.push_back(std::sqrt(square));
  }
  return norms;
}

double Adapter::relative_displacement() const {
  return std::sqrt(squared_norm(difference_from_source())) / source_norm_;
}

}  // namespace gala
