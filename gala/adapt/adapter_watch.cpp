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
void Adapter::watch(Answer& answer, BatchHealth health, const Seen& seen) {
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
  answer.health = judge(seen);
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
HealthEvent Adapter::judge(const Seen& seen) {
  double displacement = 0;
  bool exact = arena_->values().is_cpu();
  if (!exact) {
    double square = 0;
    for (const double way : travelled_) square += way * way;
    displacement = std::sqrt(square) / source_norm_;
    exact = guard_.is_far(displacement);
  }
  if (exact) displacement = relative_displacement();
  if (guard_.asks_source(displacement)) compare_with_source(seen);
  return guard_.judge(displacement, exact);
}

/// Whether the source's parameters still answer as these do. Any of their answers will do, since each has streams where it is
/// worth little: by the statistics in use, which may have followed other parameters; by the batch's, which may be small or of one class; by the
/// source's, which do not know this weather.
void Adapter::compare_with_source(const Seen& seen) {
  const std::vector<std::int64_t> ours = look_at_rows(seen.logits).predictions;
  const at::Tensor images = seen.images.to(model_.device(), at::kFloat);
  const NormKind kind = model_.norm_mode().kind;
  std::vector<Witness> witnesses = {Witness::kPresent};
  if (!model_.buffers().empty() && kind != NormKind::kSource) {
    if (kind != NormKind::kBatch) witnesses.push_back(Witness::kBatch);
    witnesses.push_back(Witness::kSource);
  }
  std::int64_t answered = 0, agreed = -1;
  for (const std::int64_t each : ours) answered += each != kNoClass;
  std::vector<std::int64_t> nearest;
  for (const Witness witness : witnesses) {
    if (2 * agreed >= answered) break;
    std::vector<std::int64_t> theirs =
        look_at_rows(answer_from_source(images, witness).to(at::kCPU)).predictions;
    std::int64_t equal = 0;
    for (std::size_t i = 0; i < ours.size(); ++i) {
      equal += ours[i] != kNoClass && ours[i] == theirs[i];
    }
    if (equal <= agreed) continue;
    agreed = equal;
    nearest = std::move(theirs);
  }
  guard_.compare(ours, nearest);
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
