#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "gala/optim/sweep.h"
#include "gala/optim/workspace.h"

namespace gala {

/// The passes as threaded kernels. After the first step they allocate nothing.
template <class Rule>
class CpuSweep : public Sweep<Rule> {
 public:
  explicit CpuSweep(const SweepContext<Rule>& context)
      : context_(context),
        chunks_(make_chunks(context.layout, context.layers, kChunk)),
        parts_(chunks_.size()) {}

  void set_rules(std::span<const Rule> rules, bool) override {
    rules_.assign(rules.begin(), rules.end());
  }

  void measure(GradientPointers gradients, const float* loss, const DisplacementView& displacement,
               bool commit, double* table) override {
    std::fill_n(table, context_.layers.size() * kSumColumns, 0.0);
    for_every_chunk([&](std::size_t i, const SweepChunk& chunk) {
      const float* gradient = part_of(gradients, chunk);
      parts_[i][kGradientSq] = gradient ? sum_of_squares(gradient, chunk.size) : 0;
    });
    double total = 0;
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      table[chunks_[i].layer * kSumColumns + kGradientSq] += parts_[i][kGradientSq];
      total += parts_[i][kGradientSq];
    }
    if (!std::isfinite(total) || !std::isfinite(*loss)) return;

    SweepView<Rule> view = view_of(displacement);
    view.commit = commit;
    for_every_chunk([&](std::size_t i, const SweepChunk& chunk) {
      measure_chunk(view, chunk, part_of(gradients, chunk), parts_[i].values);
    });
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      double* row = table + chunks_[i].layer * kSumColumns;
      for (const int column : {kUpdateSq, kUpdateDotShift, kShiftSq, kValueSq}) {
        row[column] += parts_[i][column];
      }
    }
  }

  void apply(GradientPointers gradients, const DisplacementView& displacement, bool advance,
             std::span<const double> weights) override {
    SweepView<Rule> view = view_of(displacement);
    view.commit = advance;
    for_every_chunk([&](std::size_t, const SweepChunk& chunk) {
      const auto weight = static_cast<float>(weights[chunk.layer]);
      if (weight == 0 && !displacement.proposed) return;
      apply_chunk(view, chunk, part_of(gradients, chunk), weight);
    });
  }

 private:
  static constexpr std::int64_t kChunk = 16384;

  /// The sums of a chunk, alone on its cache line: threads write them side by side.
  struct alignas(64) Part {
    double values[kSumColumns] = {};
    double& operator[](int column) { return values[column]; }
  };

  static const float* part_of(GradientPointers gradients, const SweepChunk& chunk) {
    const float* gradient = gradients[chunk.tensor];
    return gradient ? gradient + chunk.offset : nullptr;
  }

  SweepView<Rule> view_of(const DisplacementView& displacement) const {
    SweepView<Rule> view = make_view(context_, displacement);
    view.rules = rules_.data();
    return view;
  }

  template <class Work>
  void for_every_chunk(const Work& work) {
    context_.workspace.share_out(std::ssize(chunks_), [&](std::int64_t from, std::int64_t to) {
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
