// Every recipe on streams that mean it harm: no answer is a NaN, nothing is thrown, and healthy images that
// come afterwards are answered by the adapted model as if nothing had been.
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "tests/method/easy_recipe.h"

namespace gala {
namespace {

constexpr std::int64_t kImages = 8, kBatches = 6;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinite = std::numeric_limits<float>::infinity();

at::Tensor healthy(std::int64_t number, std::int64_t count = kImages, std::int64_t side = 8) {
  return toy_images(number, count, side).clamp(0, 1);
}

/// Images that the source model was led to: small steps of each pixel along the sign of the slope of `aim`.
template <class Aim>
at::Tensor led(at::Tensor images, const Aim& aim) {
  static const auto model = toy_model(1, "source");
  for (int step = 0; step < 5; ++step) {
    const at::Tensor leaf = images.detach().clone().requires_grad_();
    aim(model->forward(leaf).logits).backward();
    images = (images - 0.12 * leaf.grad().sign()).clamp(0, 1);
  }
  return images.detach();
}

at::Tensor entropy_of(const at::Tensor& logits) {
  const at::Tensor log_p = at::log_softmax(logits * 20, 1);
  return -(log_p.exp() * log_p).sum();
}

at::Tensor with_value(at::Tensor images, std::int64_t image, float value) {
  images[image].select(0, 1).select(0, 3).fill_(value);
  return images;
}

struct HostileStream {
  const char* name;
  at::Tensor (*batch)(std::int64_t number);
};

const HostileStream kStreams[] = {
    {"one class",
     [](std::int64_t n) {
       return healthy(1, 1).expand({kImages, 3, 8, 8}) * 0.98 + 0.02 * healthy(n);
     }},
    {"one image",
     [](std::int64_t) {
       return healthy(1, 1).repeat({kImages, 1, 1, 1});
     }},
    {"constant",
     [](std::int64_t n) {
       return at::full({kImages, 3, 8, 8}, 0.1 * static_cast<double>(n % 11));
     }},
    {"black",
     [](std::int64_t) {
       return at::zeros({kImages, 3, 8, 8});
     }},
    {"black and white",
     [](std::int64_t n) {
       return at::full({kImages, 3, 8, 8}, static_cast<double>(n % 2));
     }},
    {"a NaN in some",
     [](std::int64_t n) { return n % 3 == 0 ? with_value(healthy(n), n % 8, kNan) : healthy(n); }},
    {"nothing but NaN",
     [](std::int64_t n) {
       return n % 2 == 0 ? at::full({kImages, 3, 8, 8}, kNan) : healthy(n);
     }},
    {"infinities",
     [](std::int64_t n) {
       return with_value(with_value(healthy(n), 0, kInfinite), 1, -kInfinite);
     }},
    {"immense",
     [](std::int64_t n) { return with_value(healthy(n), 2, n % 2 == 0 ? 1e30F : -3e38F); }},
    {"large", [](std::int64_t n) { return healthy(n) * 1e6; }},
    {"tiny", [](std::int64_t n) { return healthy(n) * 1e-38; }},
    {"all confident", [](std::int64_t n) { return led(healthy(n), entropy_of); }},
    {"none confident",
     [](std::int64_t n) {
       return led(healthy(n), [](const at::Tensor& logits) { return -entropy_of(logits); });
     }},
    {"led to one class",
     [](std::int64_t n) {
       return led(healthy(n), [](const at::Tensor& logits) {
         return -at::log_softmax(logits, 1).select(1, 0).sum();
       });
     }},
    {"led to and fro",
     [](std::int64_t n) {
       return led(healthy(n), [n](const at::Tensor& logits) {
         return -at::log_softmax(logits, 1).select(1, n % 4).sum();
       });
     }},
    {"one at a time", [](std::int64_t n) { return healthy(n, 1); }},
    {"one constant image",
     [](std::int64_t) {
       return at::full({1, 3, 8, 8}, 0.5);
     }},
    {"changing numbers", [](std::int64_t n) { return healthy(n, 1 + n * 5 % 9); }},
    {"changing sizes", [](std::int64_t n) { return healthy(n, 1 + n * 3 % 4, 5 + n * 3 % 7); }},
    {"oblong",
     [](std::int64_t n) {
       return at::cat({healthy(n), healthy(n + 50).slice(3, 0, 3 + n % 4)}, 3);
     }},
};

bool finite(const at::Tensor& values) {
  return at::isfinite(values).all().item<bool>();
}

std::vector<bool> finite_rows(const at::Tensor& logits) {
  std::vector<bool> result;
  const at::Tensor rows = at::isfinite(logits).all(1);
  for (std::int64_t i = 0; i < rows.size(0); ++i) result.push_back(rows[i].item<bool>());
  return result;
}

/// Which images the source model itself can answer.
std::vector<bool> sound(const at::Tensor& images) {
  static const auto source = toy_model(1, "source");
  return finite_rows(source->forward(images).logits);
}

/// The stream's batches, made once.
const std::vector<at::Tensor>& batches_of(const HostileStream& stream) {
  static std::map<std::string, std::vector<at::Tensor>> made;
  std::vector<at::Tensor>& batches = made[stream.name];
  while (std::ssize(batches) < kBatches) {
    batches.push_back(stream.batch(std::ssize(batches) + 1).to(at::kFloat).contiguous());
  }
  return batches;
}

class EveryRecipeOn : public testing::TestWithParam<Recipe> {
 protected:
  static void expect_answers(const Answer& answer, const at::Tensor& images) {
    ASSERT_EQ(std::ssize(answer.predictions), images.size(0));
    ASSERT_EQ(answer.logits.size(0), images.size(0));
    const std::vector<bool> answerable = sound(images), answered = finite_rows(answer.logits);
    for (std::size_t i = 0; i < answered.size(); ++i) {
      EXPECT_EQ(answer.predictions[i] >= 0, answered[i]) << "a number that is none, as a class";
      if (answerable[i]) {
        EXPECT_TRUE(answered[i]) << "image " << i << " could be answered";
      }
    }
  }
};

TEST_P(EveryRecipeOn, HostileStreamsAnswersAndGoesOn) {
  bool watched = false;  // by turns
  for (const HostileStream& stream : kStreams) {
    SCOPED_TRACE(stream.name);
    MethodOptions options = easy_recipe(GetParam().name);
    watched = !watched;
    options.guard = watched ? "rollback:to=healthy,every=2,horizon=16" : "off";
    const auto model = toy_model(1, "source");
    try {
      Adapter adapter(*model, options, {.source_images = toy_source(options)});
      for (const at::Tensor& images : batches_of(stream)) {
        expect_answers(adapter.answer(images), images);
      }
      EXPECT_TRUE(finite(adapter.parameters().values()));
      for (const Buffer& buffer : model->buffers()) EXPECT_TRUE(finite(buffer.value));
      for (std::int64_t n = 1; n <= 3; ++n) {
        const Answer answer = adapter.answer(healthy(n));
        EXPECT_TRUE(answer.from_source.empty()) << "its own answer was no number";
        EXPECT_TRUE(finite(answer.logits));
      }
      adapter.load(adapter.save());
    } catch (const std::exception& problem) {
      ADD_FAILURE() << "an exception: " << problem.what();
    }
  }
}

/// What is no batch of pictures at all is refused in words, and the next batch is answered as ever.
TEST_P(EveryRecipeOn, WhatIsNoBatchIsRefusedInWords) {
  const auto model = toy_model(1, "source");
  const MethodOptions options = easy_recipe(GetParam().name);
  Adapter adapter(*model, options, {.source_images = toy_source(options)});
  adapter.answer(healthy(1));
  for (const at::Tensor& images : {at::zeros({0, 3, 8, 8}), at::zeros({2, 1, 8, 8}),
                                   at::zeros({3, 8, 8}), at::zeros({2, 3, 0, 8}), at::Tensor()}) {
    EXPECT_THROW(adapter.answer(images), Error);
  }
  const at::Tensor next = healthy(2);
  expect_answers(adapter.answer(next), next);
}

INSTANTIATE_TEST_SUITE_P(Recipe, EveryRecipeOn,
                         testing::ValuesIn(recipes().begin(), recipes().end()),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace gala
