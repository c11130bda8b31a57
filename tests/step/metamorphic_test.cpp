// What must not matter to a step, on random layouts and partitions, bit for bit.
#include <gtest/gtest.h>

#include "tests/step/random_site.h"

namespace gala {
namespace {

constexpr int kSteps = 24, kSites = 10;

struct Course {
  std::vector<StepRecord> records;
  std::vector<float> values;
};

/// kSteps steps on the site of this seed, whose layers stand in `order` (empty: in theirs) and whose
/// gradients are multiplied by `scale`.
Course course(std::uint64_t seed, const std::string& select, const std::string& optimizer,
              float scale = 1, const std::vector<std::size_t>& order = {}) {
  RandomSite site(seed);
  if (!order.empty()) {
    LayerPartition turned;
    for (const std::size_t l : order) turned.layers.push_back(site.layers[l]);
    site.layers = turned;
  }
  const auto stepper = make_stepper(site, optimizer, make_selector(select, seed));
  Course result;
  for (int number = 1; number <= kSteps; ++number) {
    auto gradients = site.gradients(number);
    for (auto& gradient : gradients) {
      for (float& each : gradient) each *= scale;
    }
    const float loss = 1;
    result.records.push_back(stepper->step(pointers_to(gradients), &loss));
  }
  result.values = site.values;
  return result;
}

/// A power of two changes no digit of a float, so every later choice is the same, too.
TEST(Step, ScalingEveryUpdateChangesNoCosineAndNoChoice) {
  for (std::uint64_t seed = 1; seed <= kSites; ++seed) {
    for (const char* select :
         {"gala", "gala:opening_scale=1,window=7", "gala:mode=multiple,threshold=0.5,window=5",
          "gala:opening=argmax,window=4,anchor=previous", "control:match=no"}) {
      const Course plain = course(seed, select, "sgd:rate=0.125,momentum=0.5");
      for (const float scale : {0x1p-40F, 0x1p-7F, 0x1p30F}) {
        const Course scaled = course(seed, select, "sgd:rate=0.125,momentum=0.5", scale);
        for (int s = 0; s < kSteps; ++s) {
          const auto& a = plain.records[s].layers;
          const auto& b = scaled.records[s].layers;
          ASSERT_EQ(a.size(), b.size());
          for (std::size_t l = 0; l < a.size(); ++l) {
            ASSERT_EQ(a[l].cosine, b[l].cosine) << select << " seed " << seed << " step " << s;
            ASSERT_EQ(a[l].weight, b[l].weight) << select << " seed " << seed << " step " << s;
            if (plain.records[s].window_step == 1 && a[l].update_norm > 0 && a[l].shift_norm == 0) {
              ASSERT_EQ(b[l].cosine, 1) << "nothing has moved when a window opens";
            }
          }
        }
      }
    }
  }
}

/// By any number at all, and by any optimizer's rate, however small or large.
TEST(Step, TheOpeningCosineIsOneAtAnyScale) {
  for (std::uint64_t seed = 1; seed <= kSites; ++seed) {
    for (const char* optimizer : {"adam:rate=1e-12", "adam:rate=3e4", "sgd:rate=1e-9",
                                  "sgd:rate=7e5,momentum=0.9", "adam:rate=1e-3,weight_decay=0.7"}) {
      const Course found = course(seed, "gala:window=3", optimizer, 0.37F);
      int seen = 0;
      for (const StepRecord& record : found.records) {
        if (record.window_step != 1) continue;
        for (const LayerRecord& layer : record.layers) {
          if (layer.update_norm == 0) continue;
          ASSERT_EQ(layer.cosine, 1) << optimizer << " seed " << seed;
          ++seen;
        }
      }
      EXPECT_GT(seen, 0);
    }
  }
}

TEST(Step, PermutingTheLayersPermutesTheChoice) {
  for (std::uint64_t seed = 1; seed <= kSites; ++seed) {
    const RandomSite site(seed);
    std::vector<std::size_t> order(site.layers.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    Random(seed, "order").shuffle(order);
    for (const char* select :
         {"gala", "gala:opening_scale=1,window=7", "gala:mode=multiple,threshold=0.2,window=5",
          "gala:displacement=difference,opening_scale=0.5", "all", "fixed:layers=l0", "auto_rgn",
          "auto_snr:threshold=1.2", "auto_snr:definition=paper,threshold=0.5"}) {
      const Course plain = course(seed, select, "adam:rate=0.01"),
                   turned = course(seed, select, "adam:rate=0.01", 1, order);
      for (int s = 0; s < kSteps; ++s) {
        for (std::size_t l = 0; l < order.size(); ++l) {
          const LayerRecord &a = plain.records[s].layers[order[l]],
                            &b = turned.records[s].layers[l];
          ASSERT_EQ(a.cosine, b.cosine) << select << " seed " << seed << " step " << s;
          ASSERT_EQ(a.weight, b.weight) << select << " seed " << seed << " step " << s;
        }
      }
      EXPECT_EQ(plain.values, turned.values) << select << " seed " << seed;
    }
  }
}

TEST(Step, AWindowOfNeverIsOneLongerThanTheStream) {
  const auto with_window = [](const std::string& select, int length) {
    return fmt::format("{}{}window={}", select, select.find(':') == std::string::npos ? ":" : ",",
                       length);
  };
  int others = 0;
  for (std::uint64_t seed = 1; seed <= kSites; ++seed) {
    for (const char* select :
         {"gala", "gala:opening_scale=1", "gala:anchor=previous,opening_scale=0.3",
          "gala:displacement=difference,mode=multiple", "gala:optimizer=reset,opening=argmax",
          "control:match=no,repeats=no", "control:draw=frequencies,match=no"}) {
      const Course never = course(seed, with_window(select, 0), "adam:rate=0.01"),
                   longer = course(seed, with_window(select, kSteps), "adam:rate=0.01"),
                   shorter = course(seed, with_window(select, kSteps / 3), "adam:rate=0.01");
      EXPECT_EQ(never.values, longer.values) << select << " seed " << seed;
      others += never.values != shorter.values;
      for (int s = 0; s < kSteps; ++s) {
        EXPECT_EQ(never.records[s].selected(), longer.records[s].selected()) << select;
      }
    }
  }
  EXPECT_GT(others, 5 * kSites) << "and a shorter one is nearly always another";
}

TEST(Step, WeightsThatAreAllOneAreThePlainOptimizer) {
  for (std::uint64_t seed = 1; seed <= kSites; ++seed) {
    for (const char* optimizer :
         {"adam:rate=0.01", "adam:rate=0.01,moments=selected,weight_decay=0.1",
          "sgd:rate=0.1,momentum=0.9,nesterov=yes"}) {
      RandomSite site(seed);
      HostWorkspace workspace(1);
      const auto plain = make_optimizer(optimizer);
      plain->attach({site.layout, site.layers, site.values.data(), workspace});
      for (int number = 1; number <= kSteps; ++number) {
        const auto gradients = site.gradients(number);
        const auto pointers = pointers_to(gradients);
        plain->step(pointers);
      }
      for (const char* select : {"all", "fixed", "norm_affine", "auto_snr:threshold=0",
                                 "gala:opening_scale=1,opening_steps=1000,window=7"}) {
        const Course found = course(seed, select, optimizer);
        for (const StepRecord& record : found.records) {
          for (const LayerRecord& layer : record.layers) ASSERT_EQ(layer.weight, 1) << select;
        }
        EXPECT_EQ(found.values, site.values) << select << " seed " << seed << " " << optimizer;
      }
    }
  }
}

}  // namespace
}  // namespace gala
