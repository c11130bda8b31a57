// The whole step after backward, without LibTorch: this test links the numeric heart alone.
#include "gala/step/stepper.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "gala/base/error.h"
#include "gala/base/random.h"
#include "gala/optim/host_workspace.h"

namespace gala {
namespace {

/// An archive in plain memory.
class PlainArchive : public Archive {
 public:
  std::map<std::string, std::vector<float>> buffers;
  nlohmann::json values;
  bool loading = false;

  bool loads() const override { return loading; }
  void buffer(const std::string& prefix, const Memory& memory) override {
    const auto count = static_cast<std::size_t>(memory.bytes()) / sizeof(float);
    if (!loading) buffers[prefix] = {memory.data(), memory.data() + count};
    if (loading) std::copy_n(buffers.at(prefix).begin(), count, memory.data());
  }
  Memory make_buffer() override { return workspace.make(size * 4); }

  HostWorkspace workspace;
  std::int64_t size = 0;

 protected:
  void exchange(const std::string& name, nlohmann::json& value) override {
    loading ? value = values.at(name) : values[name] = value;
  }
};

/// Three layers, the second of two tensors, with parameters and gradients of plain memory.
struct Bare {
  ArenaLayout layout;
  LayerPartition layers;
  std::vector<float> values;
  std::vector<std::vector<float>> gradients;
  std::unique_ptr<Stepper> stepper;

  explicit Bare(const std::string& select = "gala", const std::string& optimizer = "adam:rate=0.01",
                int threads = 1) {
    layout.add("first", {70000}, {1});
    layout.add("scale", {16}, {1});
    layout.add("shift", {16}, {1});
    layout.add("last", {10, 16}, {16, 1});
    layers.layers = {{"first", {0}, 70000}, {"norm", {1, 2}, 32}, {"last", {3}, 160}};
    values.assign(static_cast<std::size_t>(layout.size), 0.5F);
    for (const auto& entry : layout.entries) {
      gradients.emplace_back(static_cast<std::size_t>(entry.range.size));
    }
    auto selector = make_selector(select, 0);
    selector->attach(layers);
    stepper =
        std::make_unique<Stepper>(layout, values.data(), layers, make_optimizer(optimizer),
                                  std::move(selector), std::make_unique<HostWorkspace>(threads));
  }

  StepRecord step(int number, float loss = 1) {
    std::vector<const float*> pointers;
    for (std::size_t t = 0; t < gradients.size(); ++t) {
      Random random(5, "gradient", {static_cast<std::uint64_t>(number), t});
      for (float& g : gradients[t]) g = static_cast<float>(random.normal() + 0.3);
      pointers.push_back(gradients[t].data());
    }
    return stepper->step(pointers, &loss);
  }
};

TEST(Stepper, OpensWithAllLayersAndThenMovesOne) {
  Bare bare;
  const StepRecord opening = bare.step(1);
  ASSERT_EQ(opening.layers.size(), 3u);
  for (const LayerRecord& layer : opening.layers) {
    EXPECT_EQ(layer.cosine, 1);
    EXPECT_EQ(layer.weight, 0.01);
    EXPECT_EQ(layer.shift_norm, 0);
  }
  for (int number = 2; number <= 20; ++number) {
    const StepRecord record = bare.step(number);
    EXPECT_EQ(record.window_step, number);
    EXPECT_EQ(record.selected().size(), 1u) << number;
  }
  EXPECT_EQ(bare.step(21).selected().size(), 3u) << "a new window opens";
}

/// Against the formula, entry by entry: SGD moves by -rate * g, and TD is the sum of that.
TEST(Stepper, MeasuresTheCosineOfTheFormula) {
  Bare bare("all", "sgd:rate=0.1");
  std::vector<double> shift(bare.values.size(), 0.0);
  for (int number = 1; number <= 4; ++number) {
    const StepRecord record = bare.step(number);
    for (std::size_t l = 0; l < bare.layers.size(); ++l) {
      double along = 0, update = 0, sum = 0;
      for (const std::size_t t : bare.layers[l].tensors) {
        for (std::size_t i = 0; i < bare.gradients[t].size(); ++i) {
          const double u = -0.1F * bare.gradients[t][i];
          double& td = shift[static_cast<std::size_t>(bare.layout.entries[t].range.begin) + i];
          along += u * (u + td);
          update += u * u;
          sum += (u + td) * (u + td);
          td += u;
        }
      }
      EXPECT_NEAR(record.layers[l].cosine, along / std::sqrt(update * sum), 1e-6) << number;
    }
  }
}

TEST(Stepper, RefusesAStepThatIsNotFiniteAndMovesNothing) {
  Bare bare("all");
  bare.step(1);
  const std::vector<float> before = bare.values;
  const StepRecord refused = bare.step(2, std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(refused.refused);
  EXPECT_TRUE(refused.layers.empty());
  EXPECT_EQ(bare.values, before);
  EXPECT_EQ(bare.stepper->clock().step, 2) << "it is not counted";
  EXPECT_FALSE(bare.step(2).refused);
  EXPECT_NE(bare.values, before);
}

TEST(Stepper, GoesOnFromWhatWasRemembered) {
  for (const char* select : {"gala:anchor=previous", "random", "auto_snr:definition=paper"}) {
    Bare straight(select), resumed(select);
    for (int number = 1; number <= 25; ++number) straight.step(number);
    PlainArchive archive;
    archive.size = straight.layout.size;
    straight.stepper->remember(archive);
    resumed.values = straight.values;
    archive.loading = true;
    // The vector was assigned in place: the stepper still points at it.
    resumed.stepper->remember(archive);
    for (int number = 26; number <= 45; ++number) {
      const StepRecord a = straight.step(number), b = resumed.step(number);
      EXPECT_EQ(a.selected(), b.selected()) << select << " " << number;
    }
    EXPECT_EQ(straight.values, resumed.values) << select;
  }
}

TEST(Stepper, GivesTheSameBitsAtAnyNumberOfThreads) {
  Bare one("gala", "adam:rate=0.01", 1), three("gala", "adam:rate=0.01", 3);
  for (int number = 1; number <= 30; ++number) {
    const StepRecord a = one.step(number), b = three.step(number);
    for (std::size_t l = 0; l < a.layers.size(); ++l) {
      EXPECT_EQ(a.layers[l].cosine, b.layers[l].cosine);
    }
  }
  EXPECT_EQ(one.values, three.values);
}

/// Updates are float32, weights double.
TEST(Stepper, RefusesAWeightThatIsNoFloat) {
  class Immense : public Selector {
   public:
    std::vector<double> select(const Proposal& proposal) override {
      return std::vector<double>(proposal.layers.size(), 1e39);
    }
  };
  Bare bare("all");
  Stepper stepper(bare.layout, bare.values.data(), bare.layers, make_optimizer("adam"),
                  std::make_unique<Immense>(), std::make_unique<HostWorkspace>(1));
  const std::vector<float> before = bare.values;
  std::vector<const float*> pointers;
  for (const auto& gradient : bare.gradients) pointers.push_back(gradient.data());
  const float loss = 0;
  EXPECT_THROW(stepper.step(pointers, &loss), Error);
  EXPECT_EQ(bare.values, before);
}

TEST(Stepper, RefusesTheWrongNumberOfGradients) {
  Bare bare;
  const std::vector<const float*> none;
  const float loss = 0;
  EXPECT_THROW(bare.stepper->step(none, &loss), Error);
}

}  // namespace
}  // namespace gala
