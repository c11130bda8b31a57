// What is kept of a stream, and when a step is made on it.
#include "gala/method/store.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <list>

#include "gala/base/error.h"
#include "tests/adapt/toy.h"

namespace gala {
namespace {

/// Image `number` shows nothing but its number.
at::Tensor numbered(std::int64_t first, std::int64_t count, std::int64_t side = 2) {
  return at::arange(first, first + count, at::kFloat)
      .view({-1, 1, 1, 1})
      .expand({-1, 3, side, side});
}

std::vector<std::int64_t> numbers_of(const at::Tensor& images) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < images.size(0); ++i) {
    numbers.push_back(static_cast<std::int64_t>(images[i].mean().item<double>() + 0.5));
  }
  return numbers;
}

/// Answers of a stream whose classes come in runs.
at::Tensor answers(std::int64_t number, std::int64_t count, std::int64_t classes) {
  Random random(3, "answers", {static_cast<std::uint64_t>(number)});
  at::Tensor logits = at::zeros({count, classes});
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t c = 0; c < classes; ++c) logits[i][c] = random.normal();
    logits[i][(number / 3 + i / 7) % classes] += 3 * random.uniform();
  }
  return logits;
}

/// RoTTA's memory, in plain loops over one list.
struct PlainMemory {
  struct Kept {
    std::int64_t number, label;
    double uncertainty;
    std::int64_t age;
  };
  std::int64_t size, classes;
  std::vector<Kept> kept = {};  // in the order in which they came

  std::int64_t of(std::int64_t label) const {
    return std::count_if(kept.begin(), kept.end(),
                         [&](const Kept& each) { return each.label == label; });
  }
  double score(const Kept& each) const {
    return 1 / (1 + std::exp(-double(each.age) / double(size))) +
           each.uncertainty / std::log(double(classes));
  }
  void add(std::int64_t number, const at::Tensor& logits) {
    const at::Tensor p = at::softmax(logits, 0);
    const Kept fresh{number, logits.argmax().item<std::int64_t>(),
                     -(p * (p + 1e-6).log()).sum().item<double>(), 0};
    std::vector<bool> may_go(static_cast<std::size_t>(classes), false);
    bool room = false;
    if (double(of(fresh.label)) >= double(size) / double(classes)) {
      may_go[static_cast<std::size_t>(fresh.label)] = true;
    } else if (std::ssize(kept) < size) {
      room = true;
    } else {
      std::int64_t most = 0;
      for (std::int64_t c = 0; c < classes; ++c) most = std::max(most, of(c));
      for (std::int64_t c = 0; c < classes; ++c)
        may_go[static_cast<std::size_t>(c)] = of(c) == most;
    }
    if (!room) {
      double worst = -1;
      auto victim = kept.end();
      for (std::int64_t c = 0; c < classes; ++c) {
        for (auto each = kept.begin(); each != kept.end(); ++each) {
          if (each->label != c || !may_go[static_cast<std::size_t>(c)] || score(*each) < worst)
            continue;
          worst = score(*each);
          victim = each;
        }
      }
      room = worst > score(fresh);
      if (room) kept.erase(victim);
    }
    if (room) kept.push_back(fresh);
    for (Kept& each : kept) ++each.age;
  }
  std::vector<Kept> by_class() const {
    std::vector<Kept> sorted = kept;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Kept& a, const Kept& b) { return a.label < b.label; });
    return sorted;
  }
};

TEST(BalancedStore, KeepsWhatRottaKeeps) {
  for (const std::int64_t classes : {4, 10, 30}) {
    auto store = make_store("balanced:size=20,every=16");
    store->attach(at::kCPU, classes);
    PlainMemory plain{20, classes};
    std::int64_t number = 0, steps = 0;
    for (int batch = 0; batch < 12; ++batch) {
      const at::Tensor images = numbered(number, 25), logits = answers(batch, 25, classes);
      std::int64_t fed = 0;
      const auto feed_until = [&](std::int64_t end) {
        for (; fed < end; ++fed) plain.add(number + fed, logits[fed]);
      };
      store->take(images, logits, [&](const at::Tensor& kept) {
        ++steps;
        feed_until(steps * 16 - number);
        const auto expected = plain.by_class();
        const auto found = numbers_of(kept);
        ASSERT_EQ(found.size(), expected.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
          EXPECT_EQ(found[i], expected[i].number) << classes << " classes, step " << steps;
          EXPECT_FLOAT_EQ(store->ages()[static_cast<std::int64_t>(i)].item<float>(),
                          static_cast<float>(expected[i].age) / 20);
        }
      });
      feed_until(25);
      number += 25;
    }
    EXPECT_EQ(steps, 12 * 25 / 16);
  }
}

/// Images that come and go within one batch leave their places to later ones.
TEST(BalancedStore, KeepsImagesBitForBit) {
  for (const std::int64_t every : {0, 7, 100}) {
    auto store = make_store(fmt::format("balanced:size=12,every={}", every));
    store->attach(at::kCPU, 4);
    PlainMemory plain{12, 4};
    at::Tensor all = at::empty({0, 3, 4, 4});
    std::int64_t steps = 0, fed = 0;
    for (std::int64_t batch = 0; batch < 4; ++batch) {
      // Values of all sizes, in a layout that is not that of the store.
      Random random(5, "images", {static_cast<std::uint64_t>(batch)});
      at::Tensor images = at::empty({50, 4, 4, 3});
      for (std::int64_t i = 0; i < images.numel(); ++i) {
        images.mutable_data_ptr<float>()[i] =
            static_cast<float>(std::exp(20 * random.normal()) * random.normal());
      }
      images = images.permute({0, 3, 1, 2});
      all = at::cat({all, images});
      const at::Tensor logits = answers(batch, 50, 4);
      store->take(images, logits, [&](const at::Tensor& kept) {
        ++steps;
        const std::int64_t end = every == 0 ? 50 * (batch + 1) : every * steps;
        for (; fed < end; ++fed) plain.add(fed, answers(fed / 50, 50, 4)[fed % 50]);
        std::vector<std::int64_t> numbers;
        for (const PlainMemory::Kept& each : plain.by_class()) numbers.push_back(each.number);
        EXPECT_TRUE(same_bytes(kept, all.index_select(0, at::tensor(numbers)))) << every;
      });
    }
    EXPECT_EQ(steps, every == 0 ? 4 : 200 / every);
  }
}

TEST(BalancedStore, NoClassTakesMoreThanItsShare) {
  auto store = make_store("balanced:size=20,every=0");
  store->attach(at::kCPU, 4);
  at::Tensor logits = at::zeros({50, 4});
  logits.select(1, 2).fill_(5);
  std::int64_t kept = 0;
  store->take(numbered(0, 50), logits, [&](const at::Tensor& images) { kept = images.size(0); });
  EXPECT_EQ(kept, 5);
}

TEST(BalancedStore, BrokenAnswersStayOutAndAnotherSizeBeginsAnew) {
  auto store = make_store("balanced:size=8,every=0");
  store->attach(at::kCPU, 4);
  at::Tensor logits = answers(1, 3, 4);
  logits[1].fill_(std::numeric_limits<float>::quiet_NaN());
  std::vector<std::int64_t> kept;
  const Store::Step step = [&](const at::Tensor& images) { kept = numbers_of(images); };
  store->take(numbered(5, 3), logits, step);
  std::sort(kept.begin(), kept.end());
  EXPECT_EQ(kept, (std::vector<std::int64_t>{5, 7}));
  store->take(numbered(9, 1, /*side=*/4), answers(2, 1, 4), step);
  EXPECT_EQ(kept, (std::vector<std::int64_t>{9}));
}

/// A step may send the adapter back to the source, and the store with it.
TEST(BalancedStore, MayBeEmptiedByAStep) {
  auto store = make_store("balanced:size=8,every=4");
  store->attach(at::kCPU, 4);
  std::vector<std::size_t> sizes;
  store->take(numbered(0, 12), answers(1, 12, 4), [&](const at::Tensor& images) {
    sizes.push_back(static_cast<std::size_t>(images.size(0)));
    store->reset();
  });
  ASSERT_EQ(sizes.size(), 3u);
  for (const std::size_t size : sizes) EXPECT_LE(size, 4u);
}

TEST(WindowStore, ShowsTheLastImagesAndStepsWhenAllAreNew) {
  auto store = make_store("window:length=6");
  store->attach(at::kCPU, 4);
  std::list<std::int64_t> last;
  std::int64_t since_step = 0, number = 0;
  for (const std::int64_t batch : {1, 1, 1, 1, 1, 1, 1, 2, 3, 6, 1, 4, 4}) {
    const Store::Shown shown = store->show(numbered(number, batch));
    for (std::int64_t i = 0; i < batch; ++i) last.push_back(number + i);
    while (last.size() > 6) last.pop_front();
    std::vector<std::int64_t> found = numbers_of(shown.images);
    EXPECT_EQ(numbers_of(shown.images.index_select(0, shown.rows)),
              numbers_of(numbered(number, batch)));
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, std::vector<std::int64_t>(last.begin(), last.end()));
    since_step += batch;
    EXPECT_EQ(shown.adapt, since_step >= 6) << number;
    if (since_step >= 6) since_step -= 6;
    number += batch;
  }
}

TEST(WindowStore, RefusesABatchThatDoesNotFit) {
  auto store = make_store("window:length=4");
  store->attach(at::kCPU, 4);
  try {
    store->show(numbered(0, 5));
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("length=5 or more"), std::string::npos)
        << error.what();
  }
}

TEST(Store, RefusesValuesOutOfRange) {
  for (const char* spec : {"balanced:size=1", "balanced:every=-1", "window:length=0", "windo"}) {
    EXPECT_THROW(make_store(spec), ConfigError) << spec;
  }
}

const MethodOptions kTent{.loss = "entropy",
                          .select = "norm_affine",
                          .optimizer = "adam:rate=0.01",
                          .norm = "batch",
                          .guard = "off"};

/// Image by image in a window is what a batch of the window's length is, where all of it is new.
TEST(WindowStore, MakesTheStepOfABatch) {
  auto model = toy_model(), twin = toy_model();
  MethodOptions windowed = kTent;
  windowed.store = "window:length=4";
  Adapter one(*model, windowed), whole(*twin, kTent);
  for (int i = 1; i <= 3; ++i) {
    const at::Tensor images = toy_images(i);
    Answer last;
    for (std::int64_t n = 0; n < 4; ++n) {
      last = one.answer(images.narrow(0, n, 1));
      EXPECT_EQ(last.predictions.size(), 1u);
      EXPECT_EQ(last.steps.size(), n == 3 ? 1u : 0u);
    }
    const Answer batch = whole.answer(images);
    EXPECT_TRUE(at::allclose(last.logits[0], batch.logits[3], 1e-5, 1e-5));
    EXPECT_TRUE(at::allclose(parameters_of(one), parameters_of(whole), 0, 1e-6)) << i;
  }
}

/// Where nothing moves, a window still gives single images the statistics of many.
TEST(WindowStore, AnswersAmongTheLastImagesWithoutAdapting) {
  auto model = toy_model(), twin = toy_model();
  MethodOptions still{.select = "none", .norm = "batch", .guard = "off"};
  still.store = "window:length=3";
  Adapter adapter(*model, still);
  const at::Tensor images = toy_images(1);
  for (std::int64_t n = 0; n < 3; ++n) {
    const at::Tensor found = adapter.answer(images.narrow(0, n, 1)).logits;
    const at::Tensor expected = twin->forward(images.narrow(0, 0, n + 1)).logits;
    EXPECT_TRUE(at::allclose(found[0], expected[n], 1e-5, 1e-5)) << n;
  }
  EXPECT_EQ(adapter.totals().steps, 0);
}

/// Batch statistics over the window would carry a NaN to everybody for as long as it is in there.
TEST(WindowStore, ABrokenImageSpoilsOnlyItsOwnBatch) {
  auto model = toy_model();
  MethodOptions options = kTent;
  options.store = "window:length=4";
  options.guard = "stop";
  Adapter adapter(*model, options);
  for (int i = 1; i <= 12; ++i) {
    at::Tensor image = toy_images(i, 1);
    if (i == 3 || i == 6) image[0][1][2].fill_(std::nan(""));
    const Answer answer = adapter.answer(image);
    EXPECT_EQ(answer.unanswered.size(), i == 3 || i == 6 ? 1u : 0u) << i;
    EXPECT_TRUE(answer.from_source.empty()) << i;
  }
  EXPECT_FALSE(adapter.stopped()) << "the image was to blame";
  EXPECT_EQ(adapter.totals().refused, 0);
  EXPECT_EQ(adapter.totals().steps, 3);
}

TEST(BalancedStore, AnswersTheBatchAndStepsOnWhatItKeeps) {
  auto model = toy_model(1, "source"), twin = toy_model(1, "source");
  MethodOptions options = kTent;
  options.norm = "source";
  options.store = "balanced:size=4,every=4";
  Adapter adapter(*model, options);
  const Answer first = adapter.answer(toy_images(1, 6));
  EXPECT_TRUE(at::allclose(first.logits, twin->forward(toy_images(1, 6)).logits, 1e-5, 1e-6));
  EXPECT_EQ(first.steps.size(), 1u);
  EXPECT_EQ(adapter.answer(toy_images(2, 6)).steps.size(), 2u);
  EXPECT_EQ(adapter.totals().steps, 3);
}

}  // namespace
}  // namespace gala
