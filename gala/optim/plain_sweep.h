#pragma once
#include <ATen/ATen.h>

#include "gala/optim/sweep.h"

namespace gala {

/// The passes in LibTorch operations, for devices without a kernel; the kernels are tested against
/// them.
template <class Rule>
class PlainSweep : public Sweep<Rule> {
 public:
  explicit PlainSweep(const SweepContext<Rule>& context) : context_(context) {}

  bool can_be_captured() const override { return false; }  // its rules are numbers of the host

  void set_rules(std::span<const Rule> rules) override {
    rules_.assign(rules.begin(), rules.end());
  }

  void measure(const Gradients& gradients, const at::Tensor& loss, const Displacement& displacement,
               bool commit, const at::Tensor& table) override {
    at::Tensor finite = at::isfinite(loss);
    for (const at::Tensor& gradient : gradients.tensors) {
      if (gradient.defined()) finite = finite.logical_and(at::isfinite(gradient).all());
    }
    for (std::size_t l = 0; l < context_.layers.size(); ++l) {
      at::Tensor row = table.select(0, static_cast<std::int64_t>(l)).zero_();
      for (const std::size_t t : context_.layers[l].tensors) {
        const Piece piece(context_, gradients, t);
        std::array<at::Tensor, Rule::kMoments> fresh = piece.moments;
        rules_[l].advance(piece.gradient, piece.value, fresh.data());
        const at::Tensor u = rules_[l].update(piece.gradient, piece.value, fresh.data());
        for (int k = 0; commit && k < Rule::kMoments; ++k) {
          context_.arena.view(context_.moments[k], t)
              .copy_(at::where(finite, fresh[k], piece.moments[k]));
        }
        const at::Tensor shift = displacement.shift(context_.arena, t);
        row.add_(at::stack({dot(u, u), dot(u, shift), dot(shift, shift),
                            dot(piece.gradient, piece.gradient), dot(piece.value, piece.value)}));
      }
    }
  }

  void apply(const Gradients& gradients, const Displacement& displacement, bool advance,
             std::span<const double> weights) override {
    for (std::size_t l = 0; l < context_.layers.size(); ++l) {
      if (weights[l] == 0) continue;
      for (const std::size_t t : context_.layers[l].tensors) {
        Piece piece(context_, gradients, t);
        if (advance) {
          rules_[l].advance(piece.gradient, piece.value, piece.moments.data());
          for (int k = 0; k < Rule::kMoments; ++k) {
            context_.arena.view(context_.moments[k], t).copy_(piece.moments[k]);
          }
        }
        const at::Tensor delta =
            static_cast<float>(weights[l]) *
            rules_[l].update(piece.gradient, piece.value, piece.moments.data());
        piece.value.add_(delta);
        displacement.add(context_.arena, t, delta);
      }
    }
  }

 private:
  /// One tensor's part of everything; the moments are copies.
  struct Piece {
    at::Tensor value, gradient;
    std::array<at::Tensor, Rule::kMoments> moments;

    Piece(const SweepContext<Rule>& context, const Gradients& gradients, std::size_t tensor)
        : value(context.arena.view(context.arena.values(), tensor)),
          gradient(gradients.tensors[tensor].defined() ? gradients.tensors[tensor]
                                                       : at::zeros_like(value)) {
      for (int k = 0; k < Rule::kMoments; ++k) {
        moments[k] = context.arena.view(context.moments[k], tensor).clone();
      }
    }
  };

  static at::Tensor dot(const at::Tensor& a, const at::Tensor& b) {
    return (a.to(at::kDouble) * b.to(at::kDouble)).sum();
  }

  SweepContext<Rule> context_;
  std::vector<Rule> rules_;
};

}  // namespace gala
