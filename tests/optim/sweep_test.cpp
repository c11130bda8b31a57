// The threaded kernels against the same pass in LibTorch operations and against sums made here.
#include "gala/optim/sweep.h"

#include <gtest/gtest.h>

#include <ATen/Parallel.h>

#include <tuple>

#include "gala/base/random.h"
#include "gala/optim/adam.h"
#include "gala/optim/cpu_sweep.h"
#include "gala/optim/host_workspace.h"
#include "gala/optim/sgd.h"
#include "gala/tensor/plain_sweep.h"
#include "tests/optim/bench.h"

namespace gala {
namespace {

struct OpenAdam : Adam {
  using Adam::Adam;
  using Adam::rule;
};
struct OpenSgd : Sgd {
  using Sgd::rule;
  using Sgd::Sgd;
};

/// What a sweep works on.
template <class Rule>
struct Side {
  ParameterArena arena{bench_parameters(21)};
  LayerPartition layers = bench_layers(arena);
  TorchWorkspace workspace{at::kCPU};
  Displacement displacement;
  MomentBuffers<Rule> moments;
  std::unique_ptr<gala::Sweep<Rule>> sweep;

  Side(DisplacementForm form, Anchor anchor)
      : displacement(arena.values().const_data_ptr<float>(), arena.size(), workspace, form, anchor,
                     kBenchKeep) {
    for (Memory& moment : moments) moment = workspace.make(arena.size() * sizeof(float));
  }
  SweepContext<Rule> context() {
    return {arena.layout(),      layers,   arena.values().mutable_data_ptr<float>(), moments,
            /*sum_values=*/true, workspace};
  }
  std::vector<LayerSums> measure(const Gradients& gradients, const std::vector<Rule>& rules,
                                 bool commit) {
    std::vector<double> table(layers.size() * kSumColumns);
    constexpr float kLoss = 0;
    sweep->set_rules(rules, /*measures=*/true);
    sweep->measure(gradients.pointers(), &kLoss, displacement.view(), commit, table.data());
    std::vector<LayerSums> sums;
    for (std::size_t l = 0; l < layers.size(); ++l) {
      sums.push_back(read_sums(table.data() + l * kSumColumns, layers[l].count));
    }
    return sums;
  }
};

double relative(double value, double expected, double scale) {
  return scale > 0 ? std::abs(value - expected) / scale : std::abs(value - expected);
}

double worst_difference(const LayerSums& kernel, const LayerSums& plain) {
  EXPECT_EQ(kernel.count, plain.count);
  const double scale = std::sqrt(plain.update_sq * plain.shift_sq);
  return std::max({relative(kernel.update_sq, plain.update_sq, plain.update_sq),
                   relative(kernel.update_dot_shift, plain.update_dot_shift, scale),
                   relative(kernel.shift_sq, plain.shift_sq, plain.shift_sq),
                   relative(kernel.gradient_sq, plain.gradient_sq, plain.gradient_sq),
                   relative(kernel.value_sq, plain.value_sq, plain.value_sq)});
}

/// By norm: where an Adam update is a quotient of two tiny numbers, an ulp in either is much.
double difference(const at::Tensor& kernel, const at::Tensor& plain) {
  return relative((kernel - plain).norm().item<double>(), 0, plain.norm().item<double>());
}

/// Thirty steps on both sides, each with its own state; `rule_of` gives a layer's rule by its step.
template <class Rule, class RuleOf>
void compare(const RuleOf& rule_of, DisplacementForm form, Anchor anchor, Moments which) {
  Side<Rule> kernel(form, anchor), plain(form, anchor);
  kernel.sweep = std::make_unique<CpuSweep<Rule>>(kernel.context());
  plain.sweep = std::make_unique<PlainSweep<Rule>>(plain.context(), at::kCPU);
  const Bench source("sgd");  // for its gradients
  std::vector<std::int64_t> steps(kernel.layers.size(), 0);
  Random random(31, "weights");
  for (int step = 1; step <= 30; ++step) {
    if (step % 7 == 0) {
      kernel.displacement.open_window();
      plain.displacement.open_window();
    }
    Gradients gradients = source.gradients(step);
    if (step % 3 == 0) gradients.tensors[static_cast<std::size_t>(step) % 6] = at::Tensor();
    std::vector<double> weights;
    std::vector<Rule> rules;
    for (std::size_t l = 0; l < steps.size(); ++l) {
      weights.push_back(std::array{0.0, 0.01, 1.0}[random.below(3)]);
      if (which == Moments::kAll || weights[l] != 0) ++steps[l];
      rules.push_back(
          rule_of(which == Moments::kAll ? steps[l] : std::max<std::int64_t>(steps[l], 1)));
    }
    const auto kernel_sums = kernel.measure(gradients, rules, which == Moments::kAll);
    const auto plain_sums = plain.measure(gradients, rules, which == Moments::kAll);
    ASSERT_EQ(kernel_sums.size(), plain_sums.size());
    for (std::size_t l = 0; l < plain_sums.size(); ++l) {
      ASSERT_LT(worst_difference(kernel_sums[l], plain_sums[l]), 1e-5) << step << " " << l;
    }
    for (auto* side : {&kernel, &plain}) {
      side->sweep->apply(gradients.pointers(), side->displacement.view(),
                         which == Moments::kSelected, weights);
    }
    ASSERT_LT(difference(kernel.arena.values(), plain.arena.values()), 1e-6) << step;
    const auto apart = [&](const Memory& here, const Memory& there) {
      return difference(kernel.arena.as_buffer(here), plain.arena.as_buffer(there));
    };
    ASSERT_LT(apart(kernel.displacement.buffer(), plain.displacement.buffer()), 1e-6);
    for (std::size_t k = 0; k < kernel.moments.size(); ++k) {
      ASSERT_LT(apart(kernel.moments[k], plain.moments[k]), 1e-6) << step;
    }
    if (anchor == Anchor::kPrevious) {
      ASSERT_LT(apart(kernel.displacement.recent(), plain.displacement.recent()), 1e-6);
    }
  }
}

using Combination = std::tuple<DisplacementForm, Anchor, Moments>;
class SweepKernel : public testing::TestWithParam<Combination> {};

TEST_P(SweepKernel, OfAdamIsThePlainPass) {
  const auto [form, anchor, which] = GetParam();
  const OpenAdam adam({.rate = 0.01, .weight_decay = 0.05});
  compare<AdamRule>([&](std::int64_t step) { return adam.rule(step); }, form, anchor, which);
}

TEST_P(SweepKernel, OfSgdIsThePlainPass) {
  const auto [form, anchor, which] = GetParam();
  for (const bool nesterov : {false, true}) {
    const OpenSgd sgd({.rate = 0.1, .momentum = 0.9, .nesterov = nesterov, .weight_decay = 0.05});
    compare<SgdRule>([&](std::int64_t step) { return sgd.rule(step); }, form, anchor, which);
  }
}

std::string name_of(const testing::TestParamInfo<Combination>& test) {
  const auto [form, anchor, which] = test.param;
  return format_value(form) + "_" + format_value(anchor) + "_" + format_value(which);
}

INSTANTIATE_TEST_SUITE_P(Everything, SweepKernel,
                         testing::Combine(testing::Values(DisplacementForm::kSum,
                                                          DisplacementForm::kDifference,
                                                          DisplacementForm::kProposed),
                                          testing::Values(Anchor::kWindow, Anchor::kPrevious),
                                          testing::Values(Moments::kAll, Moments::kSelected)),
                         name_of);

TEST(SweepChunks, CoverEveryTensorOnceAndInOrder) {
  const ParameterArena arena(bench_parameters(21));
  const LayerPartition layers = bench_layers(arena);
  std::vector<std::int64_t> covered(arena.entries().size(), 0);
  for (const SweepChunk& chunk : make_chunks(arena.layout(), layers, 1000)) {
    EXPECT_EQ(chunk.offset, covered[chunk.tensor]);
    EXPECT_GT(chunk.size, 0);
    covered[chunk.tensor] += chunk.size;
    const auto& tensors = layers[chunk.layer].tensors;
    EXPECT_NE(std::find(tensors.begin(), tensors.end(), chunk.tensor), tensors.end());
    EXPECT_EQ(chunk.begin, arena.entries()[chunk.tensor].range.begin + chunk.offset);
  }
  for (std::size_t i = 0; i < covered.size(); ++i) {
    EXPECT_EQ(covered[i], arena.entries()[i].range.size);
  }
  EXPECT_GT(make_chunks(arena.layout(), layers, 1000).size(), arena.entries().size());
}

class Threads : public testing::Test {
 protected:
  void TearDown() override { at::set_num_threads(before_); }
  int before_ = at::get_num_threads();
};

TEST_F(Threads, DoNotChangeABitOfSumsOrParameters) {
  for (const std::string spec : {"adam:rate=0.01", "sgd:rate=0.1,momentum=0.9,moments=selected"}) {
    std::vector<std::vector<LayerSums>> expected;
    State expected_state;
    for (const int threads : {1, 2, 3}) {
      at::set_num_threads(threads);
      Bench bench(spec);
      for (std::size_t step = 0; step < 8; ++step) {
        const auto sums = bench.step(static_cast<int>(step), {1, 0.01, 1, 0});
        if (threads == 1) expected.push_back(sums);
        EXPECT_TRUE(same_bytes(sums, expected[step])) << spec << " " << threads << " " << step;
      }
      if (threads == 1) expected_state = bench.state();
      EXPECT_TRUE(same_bytes(bench.state(), expected_state)) << spec << " " << threads;
    }
  }
}

TEST(Measure, ChangesNothingWhereTheLossOrAGradientIsNotFinite) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const std::string spec : {"adam:rate=0.01", "sgd:rate=0.1,momentum=0.9"}) {
    Bench bench(spec);
    for (int step = 0; step < 3; ++step) bench.step(step);
    const State before = bench.state();
    for (const float bad : {kNan, kInfinity, -kInfinity}) {
      Gradients broken = bench.gradients(3);
      broken.tensors[3].view(-1)[33000] = bad;
      const auto sums = bench.measure(broken);
      EXPECT_FALSE(std::isfinite(sums[2].gradient_sq));
      EXPECT_TRUE(std::isfinite(sums[0].gradient_sq));
      EXPECT_TRUE(same_bytes(bench.state(), before)) << spec;
      bench.measure(bench.gradients(3), bad);
      EXPECT_TRUE(same_bytes(bench.state(), before)) << spec;
    }
    bench.measure(bench.gradients(3));
    EXPECT_FALSE(same_bytes(bench.state(), before)) << "and a good step must change the moments";
  }
}

TEST(Measure, SumsNoParametersWhereNobodyAsks) {
  Bench bench("adam");
  bench.attach(/*sum_values=*/false);
  const auto sums = bench.measure(bench.gradients(1));
  for (const LayerSums& row : sums) {
    EXPECT_EQ(row.value_sq, 0);
    EXPECT_GT(row.update_sq, 0);
  }
}

/// Σ a·b over the tensors of a layer.
long double dot(const ParameterArena& arena, const Layer& layer, const at::Tensor& a,
                const at::Tensor& b) {
  long double sum = 0;
  for (const std::size_t tensor : layer.tensors) {
    const Range range = arena.entries()[tensor].range;
    for (std::int64_t i = range.begin; i < range.begin + range.size; ++i) {
      sum += static_cast<long double>(a.const_data_ptr<float>()[i]) * b.const_data_ptr<float>()[i];
    }
  }
  return sum;
}

TEST(Sums, AreThoseOfTheFloatUpdateAndDisplacement) {
  for (const std::string spec : {"adam:rate=0.01", "sgd:rate=0.1,momentum=0.9"}) {
    Bench bench(spec);
    for (int step = 0; step < 5; ++step) bench.step(step);
    const Gradients gradients = bench.gradients(5);
    at::Tensor gradient = bench.arena.make_buffer();
    for (std::size_t i = 0; i < gradients.tensors.size(); ++i) {
      bench.arena.view(gradient, i).copy_(gradients.tensors[i]);
    }
    const at::Tensor shift = bench.kept().clone();
    const at::Tensor value = bench.arena.values().clone();
    const auto sums = bench.measure(gradients);
    // Applied once to a displacement of zero, the update is the displacement.
    bench.displacement.reset();
    bench.apply(gradients, {1, 1, 1, 1});
    const at::Tensor update = bench.kept();
    for (std::size_t l = 0; l < sums.size(); ++l) {
      const auto near = [&](double sum, const at::Tensor& a, const at::Tensor& b, double scale) {
        const auto expected = static_cast<double>(dot(bench.arena, bench.layers[l], a, b));
        EXPECT_NEAR(sum, expected, 1e-13 * scale) << spec << " " << bench.layers[l].name;
      };
      near(sums[l].update_sq, update, update, sums[l].update_sq);
      near(sums[l].update_dot_shift, update, shift,
           std::sqrt(sums[l].update_sq * sums[l].shift_sq));
      near(sums[l].shift_sq, shift, shift, sums[l].shift_sq);
      near(sums[l].gradient_sq, gradient, gradient, sums[l].gradient_sq);
      near(sums[l].value_sq, value, value, sums[l].value_sq);
      EXPECT_EQ(sums[l].count, bench.layers[l].count);
    }
  }
}

}  // namespace
}  // namespace gala
