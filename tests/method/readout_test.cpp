// LAME and T3A against plain loops.
#include "gala/method/readout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "gala/base/error.h"
#include "tests/adapt/toy.h"

namespace gala {
namespace {

using Rows = std::vector<std::vector<double>>;

Rows rows_of(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.to(at::kDouble).contiguous();
  Rows rows;
  for (std::int64_t n = 0; n < plain.size(0); ++n) {
    const double* row = plain.const_data_ptr<double>() + n * plain.size(1);
    rows.emplace_back(row, row + plain.size(1));
  }
  return rows;
}

std::vector<double> softmax(std::vector<double> row) {
  const double top = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (double& value : row) sum += value = std::exp(value - top);
  for (double& value : row) value /= sum;
  return row;
}

void make_unit(std::vector<double>& row) {
  double square = 0;
  for (const double value : row) square += value * value;
  for (double& value : row) value /= std::sqrt(square);
}

TEST(Lame, IsTheFixedPointOfItsIteration) {
  at::manual_seed(4);
  const at::Tensor logits = at::randn({9, 3}) * 2, features = at::rand({9, 6});
  Rows f = rows_of(features), z = rows_of(logits);
  for (auto& row : f) make_unit(row);
  Rows distance(9, std::vector<double>(9));
  double sigma = 0;
  for (int i = 0; i < 9; ++i) {
    for (int j = 0; j < 9; ++j) {
      for (int k = 0; k < 6; ++k) distance[i][j] += std::pow(f[i][k] - f[j][k], 2);
      distance[i][j] = std::sqrt(distance[i][j]);
    }
    std::vector<double> near = distance[i];
    std::sort(near.begin(), near.end());
    sigma += near[3 - 1] / 9;
  }
  Rows y(9), log_p(9);
  for (int i = 0; i < 9; ++i) {
    y[i] = softmax(z[i]);
    for (const double p : y[i]) log_p[i].push_back(std::log(p + 1e-10));
    y[i] = softmax(log_p[i]);
  }
  for (int step = 0; step < 100; ++step) {
    Rows next = log_p;
    for (int i = 0; i < 9; ++i) {
      for (int j = 0; j < 9; ++j) {
        const double k = std::exp(-std::pow(distance[i][j], 2) / (2 * sigma * sigma));
        for (int c = 0; c < 3; ++c) next[i][c] += k * y[j][c];
      }
      next[i] = softmax(next[i]);
    }
    y = next;
  }
  const Rows found = rows_of(make_readout("lame:neighbours=3")->correct({features, logits}));
  for (int i = 0; i < 9; ++i) {
    for (int c = 0; c < 3; ++c) EXPECT_NEAR(found[i][c], y[i][c], 2e-3) << i << ' ' << c;
  }
}

TEST(Lame, LetsABrokenImageSpoilNoOther) {
  at::manual_seed(4);
  at::Tensor logits = at::randn({4, 3}), features = at::rand({4, 6});
  const auto readout = make_readout("lame");
  const at::Tensor sound = readout->correct({features.narrow(0, 0, 3), logits.narrow(0, 0, 3)});
  logits[3].fill_(std::nan(""));
  const at::Tensor found = readout->correct({features, logits});
  EXPECT_TRUE(at::allclose(found.narrow(0, 0, 3), sound));
  EXPECT_TRUE(at::isnan(found[3]).all().item<bool>());
}

TEST(T3a, KeepsTheSurestFeaturesOfEachClass) {
  auto model = toy_model();
  at::Tensor weight, bias;
  for (const Parameter& parameter : model->parameters()) {
    if (parameter.in_head()) (parameter.value.dim() == 2 ? weight : bias) = parameter.value;
  }
  const std::int64_t classes = weight.size(0), width = weight.size(1);
  const auto readout = make_readout("t3a:keep=2");
  readout->attach(*model);
  struct Support {
    std::vector<double> feature;
    int label;
    double entropy;
  };
  std::vector<Support> supports;
  const auto add = [&](const at::Tensor& features, const at::Tensor& logits) {
    const Rows f = rows_of(features), z = rows_of(logits);
    for (std::size_t n = 0; n < f.size(); ++n) {
      const std::vector<double> p = softmax(z[n]);
      double entropy = 0;
      for (const double each : p) entropy -= each * std::log(each);
      supports.push_back(
          {f[n], static_cast<int>(std::max_element(p.begin(), p.end()) - p.begin()), entropy});
    }
  };
  add(weight, at::matmul(weight, weight.t()) + bias);
  at::manual_seed(8);
  for (int step = 0; step < 3; ++step) {
    const at::Tensor features = at::rand({6, width});
    const at::Tensor logits = at::matmul(features, weight.t()) + bias;
    add(features, logits);
    std::stable_sort(supports.begin(), supports.end(),
                     [](const Support& a, const Support& b) { return a.entropy < b.entropy; });
    Rows prototypes(static_cast<std::size_t>(classes),
                    std::vector<double>(static_cast<std::size_t>(width)));
    std::vector<int> kept(static_cast<std::size_t>(classes));
    std::vector<Support> stay;
    for (const Support& each : supports) {
      if (++kept[each.label] > 2) continue;
      stay.push_back(each);
      std::vector<double> unit = each.feature;
      make_unit(unit);
      for (std::int64_t k = 0; k < width; ++k) prototypes[each.label][k] += unit[k];
    }
    supports = stay;
    const Rows found = rows_of(readout->correct({features, logits})), f = rows_of(features);
    for (std::int64_t c = 0; c < classes; ++c) {
      if (kept[c] == 0) continue;
      make_unit(prototypes[c]);
      for (int n = 0; n < 6; ++n) {
        const double expected =
            std::inner_product(f[n].begin(), f[n].end(), prototypes[c].begin(), 0.0);
        EXPECT_NEAR(found[n][c], expected, 1e-4) << step << ' ' << n << ' ' << c;
      }
    }
  }
  readout->reset();
}

TEST(Readouts, RefuseValuesOutOfRange) {
  for (const char* spec : {"lame:neighbours=0", "lame:steps=0", "t3a:keep=-1"}) {
    EXPECT_THROW(make_readout(spec), ConfigError) << spec;
  }
}

}  // namespace
}  // namespace gala
