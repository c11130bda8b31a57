// Sample rules against plain loops, as the published programs compute them.
#include "gala/loss/sample_rule.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "gala/base/error.h"
#include "gala/tensor/arena.h"

namespace gala {
namespace {

using Row = std::vector<double>;

std::vector<Row> softmax_rows(const at::Tensor& logits) {
  std::vector<Row> rows;
  for (std::int64_t n = 0; n < logits.size(0); ++n) {
    Row row;
    double sum = 0;
    for (std::int64_t c = 0; c < logits.size(1); ++c) {
      row.push_back(std::exp(logits[n][c].item<double>()));
      sum += row.back();
    }
    for (double& p : row) p /= sum;
    rows.push_back(row);
  }
  return rows;
}

double entropy(const Row& p) {
  double sum = 0;
  for (const double x : p) sum -= x * std::log(x);
  return sum;
}

double cosine(const Row& a, const Row& b) {
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  return ab / std::sqrt(aa * bb);
}

/// How ETA's published program weighs a batch; `mean` is its memory, empty at first.
Row eta_by_hand(const std::vector<Row>& answers, double margin, double redundancy, Row& mean) {
  const double limit = margin * std::log(static_cast<double>(answers[0].size()));
  Row weights(answers.size(), 0.0), sum(answers[0].size(), 0.0);
  double kept = 0;
  for (std::size_t n = 0; n < answers.size(); ++n) {
    if (!(entropy(answers[n]) < limit)) continue;
    if (!mean.empty() && !(std::abs(cosine(mean, answers[n])) < redundancy)) continue;
    weights[n] = 1 / std::exp(entropy(answers[n]) - limit);
    for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += answers[n][c];
    ++kept;
  }
  if (kept == 0) return weights;
  const bool first = mean.empty();
  if (first) mean.assign(sum.size(), 0.0);
  for (std::size_t c = 0; c < sum.size(); ++c) {
    mean[c] = first ? sum[c] / kept : 0.9 * mean[c] + 0.1 * sum[c] / kept;
  }
  // The loss is a mean over the images that are left.
  for (double& weight : weights) weight *= static_cast<double>(answers.size()) / kept;
  return weights;
}

void expect_weights(const at::Tensor& found, const Row& expected) {
  ASSERT_EQ(found.size(0), std::ssize(expected));
  EXPECT_FALSE(found.requires_grad());
  for (std::size_t n = 0; n < expected.size(); ++n) {
    const double weight = found[static_cast<std::int64_t>(n)].item<double>();
    EXPECT_NEAR(weight, expected[n], 1e-4 * std::max(1.0, expected[n])) << n;
    EXPECT_EQ(weight == 0, expected[n] == 0) << n;
  }
}

TEST(EtaRule, IsThePublishedFilter) {
  at::manual_seed(3);
  const auto rule = make_sample_rule("eta:margin=0.6,redundancy=0.7");
  Row mean;
  int kept = 0, left_out = 0;
  for (int batch = 0; batch < 6; ++batch) {
    const at::Tensor logits = at::randn({12, 5}) * 3;
    const Row expected = eta_by_hand(softmax_rows(logits), 0.6, 0.7, mean);
    expect_weights(rule->weigh({Output{{}, logits}}), expected);
    for (const double weight : expected) ++(weight > 0 ? kept : left_out);
  }
  EXPECT_GT(kept, 5);
  EXPECT_GT(left_out, 5);
}

TEST(EtaRule, LearnsNothingFromABatchInWhichNoneCounts) {
  const auto rule = make_sample_rule("eta"), twin = make_sample_rule("eta");
  at::manual_seed(4);
  const at::Tensor sure = at::randn({8, 5}) * 8, unsure = at::zeros({4, 5});
  const at::Tensor none = rule->weigh({Output{{}, unsure}});
  EXPECT_TRUE(none.eq(0).all().item<bool>());
  EXPECT_TRUE(rule->weigh({Output{{}, sure}}).equal(twin->weigh({Output{{}, sure}})));
}

TEST(DiverseCertainRule, IsThePublishedWeighting) {
  at::manual_seed(5);
  const auto rule = make_sample_rule("diverse_certain");
  Row mean(5, 1.0 / 5);
  for (int batch = 0; batch < 4; ++batch) {
    const at::Tensor logits = at::randn({10, 5}) * 2;
    const std::vector<Row> answers = softmax_rows(logits);
    Row diversity, certainty;
    for (const Row& p : answers) {
      diversity.push_back(1 - cosine(mean, p));
      certainty.push_back(-entropy(p));
    }
    for (Row* values : {&diversity, &certainty}) {
      const auto [least, most] = std::minmax_element(values->begin(), values->end());
      const double low = *least, width = *most - *least;
      for (double& value : *values) value = (value - low) / width;
    }
    double middle = 0;
    for (const double value : diversity) middle += value / 10;
    Row expected;
    for (std::size_t n = 0; n < 10; ++n) {
      expected.push_back(diversity[n] < middle ? 0 : std::exp(diversity[n] * certainty[n] * 3));
    }
    expect_weights(rule->weigh({Output{{}, logits}}), expected);
    for (std::size_t c = 0; c < 5; ++c) {
      double share = 0;
      for (const Row& p : answers) share += p[c] / 10;
      mean[c] = 0.9 * mean[c] + 0.1 * share;
    }
  }
}

TEST(SampleRules, ForgetWhenReset) {
  for (const char* spec : {"eta:margin=0.9", "diverse_certain"}) {
    const auto rule = make_sample_rule(spec);
    at::manual_seed(6);
    const at::Tensor first = at::randn({10, 5}) * 3, second = at::randn({10, 5}) * 3;
    const at::Tensor before = rule->weigh({Output{{}, first}});
    rule->weigh({Output{{}, second}});
    rule->reset();
    EXPECT_TRUE(rule->weigh({Output{{}, first}}).equal(before)) << spec;
  }
}

TEST(SampleRules, AreNotSpoiltByABatchThatIsNotFinite) {
  for (const char* spec : {"eta:margin=0.9", "diverse_certain"}) {
    const auto rule = make_sample_rule(spec), twin = make_sample_rule(spec);
    at::manual_seed(7);
    const at::Tensor first = at::randn({10, 5}) * 3, second = at::randn({10, 5}) * 3;
    at::Tensor broken = second.clone();
    broken[3][2] = std::nan("");
    for (SampleRule* each : {rule.get(), twin.get()}) {
      each->weigh({Output{{}, first}});
    }
    rule->weigh({Output{{}, broken}});
    const at::Tensor found = rule->weigh({Output{{}, second}});
    EXPECT_TRUE(at::isfinite(found).all().item<bool>()) << spec;
    if (std::string(spec) == "diverse_certain") {
      EXPECT_TRUE(found.equal(twin->weigh({Output{{}, second}})));
    }
  }
}

TEST(SampleRules, RefuseOptionsOutOfRange) {
  for (const char* spec : {"eta:margin=0", "eta:redundancy=-1", "diverse_certain:sharpness=-1",
                           "diverse_certain:keep=2", "etta"}) {
    EXPECT_THROW(make_sample_rule(spec), ConfigError) << spec;
  }
}

TEST(Certain, CountsImagesOfLittleEntropyAlike) {
  at::manual_seed(3);
  const at::Tensor logits = at::randn({20, 5}) * 3;
  const std::vector<Row> answers = softmax_rows(logits);
  Row allowed(20, 1.0), expected(20, 0.0);
  for (const int n : {0, 3, 4, 11}) allowed[n] = 0;
  double kept = 0;
  for (std::size_t n = 0; n < 20; ++n) {
    expected[n] = allowed[n] != 0 && entropy(answers[n]) < 0.5 * std::log(5.0);
    kept += expected[n];
  }
  ASSERT_GT(kept, 3);
  for (double& weight : expected) weight *= 20 / kept;
  expect_weights(make_sample_rule("certain:margin=0.5")
                     ->weigh({Output{{}, logits}, at::tensor(allowed, at::kDouble)}),
                 expected);
}

/// The published program asks the network again only about the images of low entropy.
TEST(Deyo, CountsImagesWhoseLabelFallsWithTheirShape) {
  at::manual_seed(4);
  const at::Tensor logits = at::randn({30, 4}) * 3, otherwise = at::randn({30, 4}) * 3;
  const std::vector<Row> answers = softmax_rows(logits), shuffled = softmax_rows(otherwise);
  const auto rule = make_sample_rule("deyo:margin=0.5,drop=0.2");
  EXPECT_TRUE(rule->looks_again());
  Row expected(30, 0.0);
  std::vector<std::int64_t> sure;
  double kept = 0;
  for (std::size_t n = 0; n < 30; ++n) {
    if (!(entropy(answers[n]) < 0.5 * std::log(4.0))) continue;
    sure.push_back(static_cast<std::int64_t>(n));
    const auto label = std::max_element(answers[n].begin(), answers[n].end()) - answers[n].begin();
    const double fall = answers[n][label] - shuffled[n][label];
    if (!(fall > 0.2)) continue;
    expected[n] = 1 / std::exp(entropy(answers[n]) - 0.4 * std::log(4.0)) + 1 / std::exp(-fall);
    ++kept;
  }
  ASSERT_GT(kept, 2);
  ASSERT_LT(kept, static_cast<double>(sure.size()));
  for (double& weight : expected) weight *= 30 / kept;
  const Output answer{{}, logits};
  EXPECT_TRUE(at::equal(rule->wants({answer}).nonzero().squeeze(1), at::tensor(sure)));
  // Once with those that were wanted alone, once with others behind them.
  std::vector<std::int64_t> more = sure;
  for (std::int64_t n = 0; n < 30; ++n) {
    if (std::find(sure.begin(), sure.end(), n) == sure.end()) more.push_back(n);
  }
  for (const auto& numbers : {sure, more}) {
    const at::Tensor rows = at::tensor(numbers);
    const Output again{{}, otherwise.index_select(0, rows)};
    expect_weights(rule->weigh({answer, {}, {}, &again, rows}), expected);
    const Output unsure{{}, logits * 1e-3};
    EXPECT_EQ(rule->weigh({unsure, {}, {}, &again, rows}).abs().max().item<double>(), 0);
  }
  EXPECT_THROW(make_sample_rule("deyo:drop=1"), ConfigError);
  EXPECT_THROW(make_sample_rule("deyo:margin=0"), ConfigError);
  EXPECT_THROW(make_sample_rule("certain:margin=0"), ConfigError);
}

TEST(Age, CountsWhatCameLongAgoLess) {
  const auto rule = make_sample_rule("age");
  EXPECT_TRUE(rule->wants_ages());
  const Row ages{0, 0.5, 1, 7}, allowed{1, 1, 0, 1};
  Row expected;
  for (std::size_t n = 0; n < ages.size(); ++n) {
    expected.push_back(allowed[n] * std::exp(-ages[n]) / (1 + std::exp(-ages[n])));
  }
  const Output output{{}, at::zeros({4, 3}, at::kDouble)};
  expect_weights(rule->weigh({.output = output,
                              .allowed = at::tensor(allowed, at::kDouble),
                              .ages = at::tensor(ages, at::kDouble)}),
                 expected);
}

}  // namespace
}  // namespace gala
