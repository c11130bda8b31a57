#include "gala/select/auto_snr.h"

#include <gtest/gtest.h>

#include "gala/base/error.h"
#include "gala/optim/host_workspace.h"
#include "tests/select/proposal_maker.h"

namespace gala {
namespace {

using Weights = std::vector<double>;

/// Mean over entries of g² / (unbiased variance along the first axis + 1e-8), by hand.
double score_over_channels(const std::vector<std::vector<double>>& rows) {
  double total = 0;
  const std::size_t columns = rows[0].size();
  for (std::size_t c = 0; c < columns; ++c) {
    double mean = 0, variance = 0;
    for (const auto& row : rows) mean += row[c] / static_cast<double>(rows.size());
    for (const auto& row : rows) variance += (row[c] - mean) * (row[c] - mean);
    variance /= static_cast<double>(rows.size() - 1);
    for (const auto& row : rows) total += row[c] * row[c] / (variance + 1e-8);
  }
  return total / static_cast<double>(rows.size() * columns);
}

TEST(AutoSnr, ComparesTheScoreOverChannelsWithTheThreshold) {
  const std::vector<std::vector<double>> noisy = {{1, -1, 2}, {-1, 2, -1}};
  const at::Tensor gradient = at::tensor({1.0F, -1.0F, 2.0F, -1.0F, 2.0F, -1.0F}).reshape({2, 3});
  const double score = score_over_channels(noisy);
  ProposalMaker maker({layer_sums(1)}, {gradient});
  EXPECT_EQ(AutoSnrSelector({.threshold = score * 0.999}).select(maker.at_step(1)), (Weights{1}));
  EXPECT_EQ(AutoSnrSelector({.threshold = score * 1.001}).select(maker.at_step(1)), (Weights{0}));
}

TEST(AutoSnr, TakesAConstantGradientAsPureSignal) {
  ProposalMaker maker(
      {layer_sums(1), layer_sums(1)},
      {at::full({2, 3}, 0.5F), at::tensor({3.0F, 0.0F, 0.0F, -3.0F, 0.0F, 0.0F}).reshape({2, 3})});
  EXPECT_EQ(AutoSnrSelector({}).select(maker.at_step(1)), (Weights{1, 0}));
}

TEST(AutoSnr, LooksBackOverBatchesInThePapersForm) {
  AutoSnrSelector selector({.definition = SnrDefinition::kPaper, .threshold = 0.5, .history = 3});
  ProposalMaker maker({layer_sums(1), layer_sums(1)});
  const auto step = [&](float steady, float flipping) {
    maker.gradients().tensors = {at::full({2, 3}, steady), at::full({2, 3}, flipping)};
    return selector.select(maker.at_step(1));
  };
  EXPECT_EQ(step(1.0F, 1.0F), (Weights{1, 1}));  // one gradient tells nothing yet
  EXPECT_EQ(step(1.1F, -1.0F), (Weights{1, 0}));
  EXPECT_EQ(step(0.9F, 1.0F), (Weights{1, 0}));
  selector.restart();
  EXPECT_EQ(step(1.0F, 1.0F), (Weights{1, 1}));  // those were of other parameters
}

TEST(AutoSnr, ForgetsGradientsOlderThanItsHistory) {
  AutoSnrSelector selector({.definition = SnrDefinition::kPaper, .threshold = 0.5, .history = 2});
  ProposalMaker maker({layer_sums(1), layer_sums(1)});
  const auto step = [&](float first, float second) {
    maker.gradients().tensors = {at::full({2, 3}, first), at::full({2, 3}, second)};
    return selector.select(maker.at_step(1));
  };
  step(1.0F, -5.0F);
  EXPECT_EQ(step(1.1F, 5.0F), (Weights{1, 0}));
  step(1.0F, 5.4F);
  // The flip is out of sight: both are steady, the second a little more so.
  EXPECT_EQ(step(1.1F, 5.5F), (Weights{0, 1}));
}

TEST(AutoSnr, GoesOnFromItsState) {
  const AutoSnrSelector::Options options{.definition = SnrDefinition::kPaper, .threshold = 0.5};
  AutoSnrSelector first(options), second(options);
  ProposalMaker maker({layer_sums(1), layer_sums(1)},
                      {at::full({2, 3}, 1.0F), at::full({2, 3}, 1.0F)});
  first.select(maker.at_step(1));
  State state;
  StateArchive saving(maker.arena(), state);
  first.remember(saving);
  const State saved = state;
  StateArchive loading(maker.arena(), saved);
  second.remember(loading);
  maker.gradients().tensors = {at::full({2, 3}, 1.1F), at::full({2, 3}, -1.0F)};
  EXPECT_EQ(second.select(maker.at_step(2)), first.select(maker.at_step(2)));
  EXPECT_EQ(second.select(maker.at_step(2)), (Weights{1, 0}));
}

/// Without LibTorch the scores are the same.
TEST(AutoSnr, ScoresAlikeInAnyWorkspace) {
  at::manual_seed(5);
  const at::Tensor conv = at::randn({4, 3, 2, 2}).contiguous(at::MemoryFormat::ChannelsLast);
  const std::vector<NamedTensor> named{{"conv", conv},
                                       {"flat", at::randn({7})},
                                       {"one", at::randn({1, 5})},
                                       {"turned", at::randn({3, 4}).t()},
                                       {"number", at::randn({})}};
  const ParameterArena arena(named);
  Gradients gradients;
  for (std::size_t i = 0; i < named.size(); ++i) {
    gradients.tensors.push_back(at::randn_like(arena.leaf(i).detach()));
  }
  TorchWorkspace torch(at::kCPU);
  HostWorkspace host(2);
  const auto pointers = gradients.pointers();
  const auto expected = torch.signal_over_rows(arena.layout(), pointers, 1e-8);
  const auto found = host.signal_over_rows(arena.layout(), pointers, 1e-8);
  ASSERT_EQ(found.size(), named.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-5 * expected[i]) << named[i].name;
  }
  std::vector<Memory> buffers;
  for (int k = 0; k < 3; ++k) buffers.push_back(hold(at::randn_like(arena.values())));
  const auto over_buffers = torch.signal_over_buffers(arena.layout(), buffers, 1e-8);
  const auto on_host = host.signal_over_buffers(arena.layout(), buffers, 1e-8);
  for (std::size_t i = 0; i < on_host.size(); ++i) {
    EXPECT_NEAR(on_host[i], over_buffers[i], 1e-4 * over_buffers[i]) << named[i].name;
  }
}

TEST(AutoSnr, RefusesOptionsOutOfRange) {
  EXPECT_THROW(AutoSnrSelector({.threshold = -1}), ConfigError);
  EXPECT_THROW(AutoSnrSelector({.history = 1}), ConfigError);
}

}  // namespace
}  // namespace gala
