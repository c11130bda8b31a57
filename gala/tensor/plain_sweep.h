#pragma once
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <array>
#include <span>
#include <vector>

#include "gala/optim/sweep.h"
#include "gala/tensor/torch_workspace.h"

namespace gala {

/// The passes in LibTorch operations, for devices without a kernel; the kernels are tested against
/// them.
template <class Rule>
class PlainSweep : public Sweep<Rule> {
 public:
  PlainSweep(const SweepContext<Rule>& context, at::Device device)
      : context_(context), device_(device) {}

  bool can_be_captured() const override { return false; }  // its rules are numbers of the host

  void set_rules(std::span<const Rule> rules, bool) override {
    rules_.assign(rules.begin(), rules.end());
  }

  void measure(GradientPointers gradients, const float* loss, const DisplacementView& displacement,
               bool commit, double* table) override {
    const c10::NoGradGuard no_grad;
    const auto rows = static_cast<std::int64_t>(context_.layers.size());
    const at::Tensor sums =
        at::from_blob(table, {rows, kSumColumns}, at::TensorOptions(at::kDouble).device(device_))
            .zero_();
    at::Tensor finite = at::isfinite(tensor_at(loss, {}, device_));
    for (std::size_t t = 0; t < gradients.size(); ++t) {
      if (!gradients[t]) continue;
      const at::Tensor gradient = tensor_at(gradients[t], context_.layout.entries[t], device_);
      finite = finite.logical_and(at::isfinite(gradient).all());
    }
    for (std::size_t l = 0; l < context_.layers.size(); ++l) {
      for (const std::size_t t : context_.layers[l].tensors) {
        const Piece piece = piece_of(gradients, t);
        std::array<at::Tensor, Rule::kMoments> fresh = piece.moments;
        rules_[l].advance(piece.gradient, piece.value, fresh.data());
        const at::Tensor u = rules_[l].update(piece.gradient, piece.value, fresh.data());
        for (int k = 0; commit && k < Rule::kMoments; ++k) {
          part_of(context_.moments[k].data(), t)
              .copy_(at::where(finite, fresh[k], piece.moments[k]));
        }
        at::Tensor shift = part_of(displacement.shift, t);
        if (displacement.difference) shift = piece.value - shift;
        sums.select(0, static_cast<std::int64_t>(l))
            .add_(at::stack({dot(u, u), dot(u, shift), dot(shift, shift),
                             dot(piece.gradient, piece.gradient), dot(piece.value, piece.value)}));
      }
    }
  }

  void apply(GradientPointers gradients, const DisplacementView& displacement, bool advance,
             std::span<const double> weights) override {
    const c10::NoGradGuard no_grad;
    for (std::size_t l = 0; l < context_.layers.size(); ++l) {
      if (weights[l] == 0 && !displacement.proposed) continue;
      for (const std::size_t t : context_.layers[l].tensors) {
        Piece piece = piece_of(gradients, t);
        if (advance) {
          rules_[l].advance(piece.gradient, piece.value, piece.moments.data());
          for (int k = 0; weights[l] != 0 && k < Rule::kMoments; ++k) {
            part_of(context_.moments[k].data(), t).copy_(piece.moments[k]);
          }
        }
        const at::Tensor update =
            rules_[l].update(piece.gradient, piece.value, piece.moments.data());
        const at::Tensor delta = static_cast<float>(weights[l]) * update;
        if (weights[l] != 0) piece.value.add_(delta);
        for (float* sums :
             {displacement.difference ? nullptr : displacement.shift, displacement.recent}) {
          if (!sums) continue;
          if (displacement.proposed) {
            part_of(sums, t).mul_(displacement.keep).add_(update);
          } else {
            part_of(sums, t).add_(delta);
          }
        }
      }
    }
  }

 private:
  /// One tensor's part of everything; the moments are copies.
  struct Piece {
    at::Tensor value, gradient;
    std::array<at::Tensor, Rule::kMoments> moments;
  };

  at::Tensor part_of(float* buffer, std::size_t tensor) const {
    const ArenaLayout::Entry& entry = context_.layout.entries[tensor];
    return tensor_at(buffer + entry.range.begin, entry, device_);
  }

  Piece piece_of(GradientPointers gradients, std::size_t tensor) const {
    Piece piece;
    piece.value = part_of(context_.values, tensor);
    piece.gradient = gradients[tensor]
                         ? tensor_at(gradients[tensor], context_.layout.entries[tensor], device_)
                         : at::zeros_like(piece.value);
    for (int k = 0; k < Rule::kMoments; ++k) {
      piece.moments[k] = part_of(context_.moments[k].data(), tensor).clone();
    }
    return piece;
  }

  static at::Tensor dot(const at::Tensor& a, const at::Tensor& b) {
    return (a.to(at::kDouble) * b.to(at::kDouble)).sum();
  }

  SweepContext<Rule> context_;
  at::Device device_;
  std::vector<Rule> rules_;
};

}  // namespace gala
