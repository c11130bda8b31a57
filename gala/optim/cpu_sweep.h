#pragma once
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "gala/optim/sweep.h"

namespace gala {

/// The passes as threaded kernels. After the first step they allocate nothing.
template <class Rule>
class CpuSweep : public Sweep<Rule> {
 public:
  explicit CpuSweep(const SweepContext<Rule>& context)
      : context_(context),
        chunks_(make_chunks(context.arena, context.layers, kChunk)),
        parts_(chunks_.size()) {}

  void set_rules(std::span<const Rule> rules) override {
    rules_.assign(rules.begin(), rules.end());
  }

  void measure(const Gradients& gradients, const at::Tensor& loss, const Displacement& displacement,
               bool commit, const at::Tensor& table) override {
    double* rows = table.mutable_data_ptr<double>();
    std::fill_n(rows, table.numel(), 0.0);
    for_every_chunk([&](std::size_t i, const SweepChunk& chunk) {
      const float* gradient = data_or_null(gradients.tensors[chunk.tensor]);
      parts_[i][kGradientSq] = gradient ? sum_of_squares(gradient + chunk.offset, chunk.size) : 0;
    });
    double total = 0;
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      rows[chunks_[i].layer * kSumColumns + kGradientSq] += parts_[i][kGradientSq];
      total += parts_[i][kGradientSq];
    }
    if (!std::isfinite(total) || !std::isfinite(*loss.const_data_ptr<float>())) return;

    SweepView<Rule> view = view_of(displacement);
    view.commit = commit;
    for_every_chunk([&](std::size_t i, const SweepChunk& chunk) {
      const float* gradient = data_or_null(gradients.tensors[chunk.tensor]);
      measure_chunk(view, chunk, gradient ? gradient + chunk.offset : nullptr, parts_[i].values);
    });
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      double* row = rows + chunks_[i].layer * kSumColumns;
      for (const int column : {kUpdateSq, kUpdateDotShift, kShiftSq, kValueSq}) {
        row[column] += parts_[i][column];
      }
    }
  }

  void apply(const Gradients& gradients, const Displacement& displacement, bool advance,
             std::span<const double> weights) override {
    SweepView<Rule> view = view_of(displacement);
    view.commit = advance;
    for_every_chunk([&](std::size_t, const SweepChunk& chunk) {
      const auto weight = static_cast<float>(weights[chunk.layer]);
      if (weight == 0) return;
      const float* gradient = data_or_null(gradients.tensors[chunk.tensor]);
      apply_chunk(view, chunk, gradient ? gradient + chunk.offset : nullptr, weight);
    });
  }

 private:
  static constexpr std::int64_t kChunk = 16384;

  /// The sums of a chunk, alone on its cache line: threads write them side by side.
  struct alignas(64) Part {
    double values[kSumColumns] = {};
    double& operator[](int column) { return values[column]; }
  };

  SweepView<Rule> view_of(const Displacement& displacement) const {
    SweepView<Rule> view = make_view(context_, displacement);
    view.rules = rules_.data();
    return view;
  }

  template <class Work>
  void for_every_chunk(const Work& work) {
    at::parallel_for(
        0, static_cast<std::int64_t>(chunks_.size()), 1, [&](std::int64_t from, std::int64_t to) {
          for (auto i = static_cast<std::size_t>(from); i < static_cast<std::size_t>(to); ++i) {
            work(i, chunks_[i]);
          }
        });
  }

  SweepContext<Rule> context_;
  std::vector<SweepChunk> chunks_;
  std::vector<Part> parts_;
  std::vector<Rule> rules_;
};

}  // namespace gala
