// How far a stream went from the source, and what is held back by it.
#include "gala/method/drift.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "gala/base/error.h"
#include "gala/method/cosine_penalty.h"
#include "tests/adapt/toy.h"

namespace gala {
namespace {

using Rows = std::vector<std::vector<double>>;

Rows rows_of(const at::Tensor& tensor) {
  Rows rows;
  for (std::int64_t n = 0; n < tensor.size(0); ++n) {
    rows.emplace_back();
    for (std::int64_t f = 0; f < tensor.size(1); ++f) {
      rows.back().push_back(tensor[n][f].item<double>());
    }
  }
  return rows;
}

/// Mean and unbiased variance of the source's features, by the class that the network answers.
struct PlainSource {
  Rows mean, variance;
  std::vector<int> count;

  PlainSource(Model& model, int batches) {
    Rows features;
    std::vector<std::int64_t> labels;
    for (int i = 0; i < batches; ++i) {
      const Output output = model.forward(toy_images(100 + i, 16), false);
      for (const auto& row : rows_of(output.features)) features.push_back(row);
      for (std::int64_t n = 0; n < 16; ++n) {
        labels.push_back(output.logits[n].argmax().item<std::int64_t>());
      }
    }
    const std::size_t size = features[0].size();
    mean.assign(4, std::vector<double>(size, 0));
    variance = mean;
    count.assign(4, 0);
    for (const std::int64_t label : labels) ++count[static_cast<std::size_t>(label)];
    for (std::size_t f = 0; f < size; ++f) {
      for (std::size_t c = 0; c < 4; ++c) {
        for (std::size_t n = 0; n < labels.size(); ++n) {
          if (labels[n] == static_cast<std::int64_t>(c)) mean[c][f] += features[n][f] / count[c];
        }
        for (std::size_t n = 0; n < labels.size(); ++n) {
          if (labels[n] != static_cast<std::int64_t>(c)) continue;
          variance[c][f] += std::pow(features[n][f] - mean[c][f], 2) / std::max(count[c] - 1, 1);
        }
      }
    }
  }
};

/// A network that gives every class to some of the source's images: an untrained one has a favourite.
std::unique_ptr<Model> fair_model() {
  auto model = toy_model(1, "source");
  at::Tensor mean = at::zeros({4});
  for (int i = 0; i < 3; ++i)
    mean += model->forward(toy_images(100 + i, 16), false).logits.mean(0) / 3;
  model->parameters().back().value -= mean;
  return model;
}

SourceImages source_images(int batches) {
  return
      [batches, i = 0]() mutable { return i < batches ? toy_images(100 + i++, 16) : at::Tensor(); };
}

TEST(FeatureDrift, IsThatOfPetta) {
  auto model = fair_model();
  model->set_norm_mode(NormMode::parse("batch"));  // the source is learned with its own statistics
  auto drift = make_drift("features:keep=0.9");
  drift->learn(*model, source_images(3));
  EXPECT_EQ(model->norm_mode().kind, NormKind::kBatch);
  auto twin = fair_model();
  const PlainSource plain(*twin, 3);
  ASSERT_GE(std::count_if(plain.count.begin(), plain.count.end(), [](int n) { return n > 1; }), 2);
  Rows moving = plain.mean;
  at::manual_seed(4);
  const auto size = static_cast<std::int64_t>(moving[0].size());
  for (int batch = 0; batch < 4; ++batch) {
    const at::Tensor features = at::randn({10, size}) + 1, logits = at::randn({10, 4});
    drift->observe({.features = features, .logits = logits});
    std::vector<std::vector<std::int64_t>> members(4);
    for (std::int64_t n = 0; n < 10; ++n) {
      members[static_cast<std::size_t>(logits[n].argmax().item<std::int64_t>())].push_back(n);
    }
    double sum = 0, terms = 0;
    for (std::size_t c = 0; c < 4; ++c) {
      if (members[c].empty() || plain.count[c] < 2) continue;
      for (std::size_t f = 0; f < moving[c].size(); ++f) {
        sum += std::pow(moving[c][f] - plain.mean[c][f], 2) / (plain.variance[c][f] + 1e-6);
        terms += 1;
        double mean = 0;
        for (const std::int64_t n : members[c]) {
          mean += features[n][static_cast<std::int64_t>(f)].item<double>() /
                  static_cast<double>(members[c].size());
        }
        moving[c][f] = 0.9 * moving[c][f] + 0.1 * mean;
      }
    }
    ASSERT_GT(terms, 0);
    EXPECT_NEAR(drift->value().item<double>(), 1 - std::exp(-sum / terms), 1e-4) << batch;
  }
  EXPECT_GT(drift->value().item<double>(), 0);
  drift->reset();
  EXPECT_EQ(drift->value().item<double>(), 0);
}

TEST(FeatureDrift, TakesNothingBrokenIn) {
  auto model = toy_model(1, "source");
  auto drift = make_drift("features");
  drift->learn(*model, source_images(3));
  Output output = model->forward(toy_images(1), false);
  output.features = at::full_like(output.features, std::nan(""));
  drift->observe(output);
  drift->observe(model->forward(toy_images(2), false));
  EXPECT_EQ(drift->value().item<double>(), 0);  // nothing moved the means between the two
  EXPECT_THROW(make_drift("features:keep=2"), ConfigError);
  EXPECT_THROW(make_drift("features")->learn(*model, source_images(0)), ConfigError);
}

TEST(CosinePenalty, HasTheSlopeOfItsValue) {
  at::manual_seed(9);
  const ParameterArena arena(std::vector<NamedTensor>{
      {"a", at::randn({3, 4})}, {"b", at::randn({5})}, {"nothing", at::zeros({2})}});
  CosinePenalty penalty({.weight = 6});
  penalty.learn(*toy_model(), arena, {});
  const at::Tensor source = arena.values().clone();
  arena.values().add_(at::randn(source.sizes()) * 0.3);
  penalty.scale_by(at::full({}, 0.5));
  Gradients gradients;
  gradients.tensors.resize(3);
  penalty.add(arena, gradients);
  // 6 · 0.5 · mean over the three tensors of -cos, by differences.
  const auto value = [&](const at::Tensor& values) {
    double sum = 0;
    for (std::size_t i = 0; i < 2; ++i) {
      const at::Tensor x = arena.view(values, i).to(at::kDouble).flatten();
      const at::Tensor y = arena.view(source, i).to(at::kDouble).flatten();
      sum -= (x.dot(y) / (x.norm() * y.norm())).item<double>();
    }
    return 6 * 0.5 * sum / 3;
  };
  for (std::size_t i = 0; i < 2; ++i) {
    const at::Tensor part = arena.view(arena.values(), i);
    for (std::int64_t k = 0; k < part.numel(); ++k) {
      at::Tensor moved = arena.values().to(at::kDouble);
      arena.view(moved, i).view({-1})[k] += 1e-6;
      const double slope = (value(moved) - value(arena.values().to(at::kDouble))) / 1e-6;
      EXPECT_NEAR(gradients.tensors[i].view({-1})[k].item<double>(), slope, 2e-5);
    }
  }
  // What has no direction is not pulled.
  arena.view(arena.values(), 2).fill_(1);
  Gradients again;
  again.tensors.resize(3);
  penalty.add(arena, again);
  EXPECT_EQ(again.tensors[2].abs().max().item<float>(), 0);
}

/// The teacher's way from the source after three steps.
double way_of_the_teacher(const char* drift) {
  auto model = toy_model(1, "source");
  MethodOptions options{.loss = "teacher_cross_entropy",
                        .select = "all",
                        .optimizer = "sgd:rate=0.5",
                        .teacher = "mean:keep=0.5",
                        .norm = "batch",
                        .guard = "off"};
  options.drift = drift;
  const bool learns = options.drift != "none";
  Adapter adapter(*model, options, {.source_images = learns ? source_images(3) : SourceImages{}});
  const State before = adapter.save();
  for (int i = 1; i <= 3; ++i) adapter.answer(toy_images(5 * i, 8));
  const State after = adapter.save();
  double square = 0;
  for (const auto& entry : adapter.parameters().entries()) {
    const std::string name = "teacher/" + entry.name;
    square += (after.tensors.at(name) - before.tensors.at(name)).square().sum().item<double>();
  }
  return std::sqrt(square);
}

TEST(FeatureDrift, SlowsTheTeacher) {
  EXPECT_GT(way_of_the_teacher("none"), 1.1 * way_of_the_teacher("features:keep=0"));
}

/// Running statistics of a teacher are its own: those of the student follow other images.
TEST(MeanTeacher, HasRunningStatisticsOfItsOwn) {
  auto model = toy_model(1, "source");
  MethodOptions options{.loss = "teacher_cross_entropy:look=view",
                        .select = "norm_affine",
                        .view = "flip",
                        .teacher = "mean",
                        .answer = AnswerWith::kTeacher,
                        .norm = "running:momentum=0.5,gradient=yes",
                        .guard = "off"};
  Adapter adapter(*model, options);
  const at::Tensor images = toy_images(1, 8) * at::linspace(0.2, 2, 8).view({1, 1, 1, 8});
  adapter.answer(images);
  const State state = adapter.save();
  const std::string name = model->buffers().front().name;
  const at::Tensor student = state.tensors.at("buffer/" + name);
  const at::Tensor teacher = state.tensors.at("teacher_statistics/" + name);
  const at::Tensor source = toy_model(1, "source")->buffers().front().value;
  EXPECT_FALSE(at::allclose(teacher, source, 0, 1e-4));
  EXPECT_FALSE(at::allclose(student, source, 0, 1e-4));
  EXPECT_FALSE(at::allclose(student, teacher, 0, 1e-6));
}

}  // namespace
}  // namespace gala
