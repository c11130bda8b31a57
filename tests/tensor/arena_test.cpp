#include "gala/tensor/arena.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "gala/base/error.h"

namespace gala {
namespace {

/// Channels-last, flat, without dimensions, dense but transposed, and not dense at all.
std::vector<NamedTensor> parameters() {
  at::manual_seed(1);
  return {{"conv.weight", at::randn({5, 3, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast)},
          {"conv.bias", at::randn({5})},
          {"scale", at::randn({})},
          {"head.weight", at::randn({7, 5}).t()},
          {"strided", at::randn({4, 6}).slice(1, 0, 6, 2)}};
}

std::vector<NamedTensor> contiguous(std::vector<NamedTensor> tensors) {
  for (NamedTensor& named : tensors) named.tensor = named.tensor.contiguous();
  return tensors;
}

std::string message_of(const std::vector<NamedTensor>& tensors) {
  try {
    const ParameterArena arena(tensors);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Arena, CopiesTheValues) {
  const auto given = parameters();
  const ParameterArena arena(given);
  ASSERT_EQ(arena.entries().size(), given.size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    EXPECT_EQ(arena.entries()[i].name, given[i].name);
    EXPECT_TRUE(arena.leaf(i).equal(given[i].tensor)) << given[i].name;
    const at::Tensor before = given[i].tensor.clone();
    given[i].tensor.fill_(100);
    EXPECT_TRUE(arena.leaf(i).equal(before)) << given[i].name;
  }
}

TEST(Arena, KeepsTheStridesOfDenseTensorsAndPacksTheOthers) {
  const auto given = parameters();
  const ParameterArena arena(given);
  for (std::size_t i = 0; i + 1 < given.size(); ++i) {
    EXPECT_EQ(arena.leaf(i).strides(), given[i].tensor.strides()) << given[i].name;
  }
  EXPECT_EQ(arena.leaf(4).strides(), at::IntArrayRef({3, 1}));
}

TEST(Arena, AlignsEveryTensorAndKeepsThemApart) {
  const auto given = parameters();
  const ParameterArena arena(given);
  std::int64_t end = 0;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Range range = arena.entries()[i].range;
    EXPECT_EQ(range.size, given[i].tensor.numel());
    EXPECT_GE(range.begin, end);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena.leaf(i).const_data_ptr()) % 64, 0u);
    EXPECT_EQ(range.begin * static_cast<std::int64_t>(sizeof(float)) % 512, 0);
    EXPECT_EQ(arena.leaf(i).const_data_ptr<float>(),
              arena.values().const_data_ptr<float>() + range.begin);
    end = range.begin + range.size;
  }
  EXPECT_LE(end, arena.size());
  EXPECT_EQ(arena.size(), arena.values().numel());
}

TEST(Arena, GivesLeavesThatSeeWritesToTheBuffer) {
  const ParameterArena arena(parameters());
  EXPECT_FALSE(arena.values().requires_grad());
  const at::Tensor values = arena.values();
  values.fill_(3);
  for (std::size_t i = 0; i < arena.entries().size(); ++i) {
    EXPECT_TRUE(arena.leaf(i).is_leaf());
    EXPECT_TRUE(arena.leaf(i).requires_grad());
    EXPECT_TRUE(arena.leaf(i).detach().eq(3).all().item<bool>());
  }
}

TEST(Arena, TakesParametersThatRequireGrad) {
  auto given = parameters();
  given[1].tensor.requires_grad_();
  const ParameterArena arena(given);
  EXPECT_TRUE(arena.leaf(1).is_leaf());
  EXPECT_FALSE(arena.values().requires_grad());
  arena.leaf(1).sum().backward();
  EXPECT_FALSE(given[1].tensor.grad().defined());
}

/// Uses every tensor; `leaves` in the order of parameters().
at::Tensor loss_of(const std::vector<at::Tensor>& leaves) {
  at::manual_seed(2);
  const at::Tensor images = at::randn({2, 3, 6, 6}).contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor features = at::conv2d(images, leaves[0], leaves[1]).mul(leaves[2]).mean({2, 3});
  return features.mm(leaves[3]).square().sum() + leaves[4].pow(3).sum();
}

TEST(Arena, ReceivesGradientsInTheStridesOfTheLeaf) {
  const auto given = parameters();
  const ParameterArena arena(given);
  std::vector<at::Tensor> leaves, plain;
  for (std::size_t i = 0; i < given.size(); ++i) {
    leaves.push_back(arena.leaf(i));
    plain.push_back(given[i].tensor.contiguous().clone().requires_grad_());
  }
  loss_of(leaves).backward();
  loss_of(plain).backward();
  for (std::size_t i = 0; i < given.size(); ++i) {
    ASSERT_TRUE(arena.leaf(i).grad().defined());
    EXPECT_EQ(arena.leaf(i).grad().strides(), arena.leaf(i).strides()) << given[i].name;
    EXPECT_TRUE(at::allclose(arena.leaf(i).grad(), plain[i].grad(), 1e-4, 1e-6)) << given[i].name;
  }
}

TEST(Arena, ViewsPartsOfAnyBuffer) {
  const ParameterArena arena(parameters());
  const at::Tensor longer = at::zeros({arena.size() + 48});
  for (const at::Tensor& buffer : {arena.make_buffer(), longer.slice(0, 48)}) {
    EXPECT_EQ(buffer.numel(), arena.size());
    EXPECT_EQ(buffer.abs().sum().item<float>(), 0);
    double expected = 0;
    for (std::size_t i = 0; i < arena.entries().size(); ++i) {
      const at::Tensor part = arena.view(buffer, i);
      EXPECT_EQ(part.sizes(), arena.leaf(i).sizes());
      EXPECT_EQ(part.strides(), arena.leaf(i).strides());
      part.fill_(static_cast<double>(i + 1));
      expected += static_cast<double>(i + 1) * static_cast<double>(part.numel());
    }
    EXPECT_EQ(buffer.sum().item<float>(), expected);
  }
  EXPECT_EQ(longer.slice(0, 0, 48).abs().sum().item<float>(), 0);
}

TEST(Arena, SavesByNameInContiguousOrder) {
  const auto given = parameters();
  const ParameterArena arena(given);
  State state;
  arena.save(arena.values(), "part/", state);
  ASSERT_EQ(state.tensors.size(), given.size());
  for (const auto& [name, tensor] : given) {
    const at::Tensor& saved = state.tensors.at("part/" + name);
    EXPECT_TRUE(saved.is_contiguous()) << name;
    EXPECT_TRUE(saved.equal(tensor)) << name;
    EXPECT_FALSE(saved.requires_grad());
  }
  arena.values().zero_();
  EXPECT_TRUE(state.tensors.at("part/conv.weight").equal(given[0].tensor));
}

TEST(Arena, LoadsIntoAnotherLayout) {
  const auto given = parameters();
  const ParameterArena arena(given);
  const ParameterArena other(contiguous(given));
  ASSERT_NE(arena.leaf(0).strides(), other.leaf(0).strides());
  State state;
  arena.save(arena.values(), "part/", state);
  at::Tensor buffer = other.make_buffer();
  other.load(buffer, "part/", state);
  EXPECT_TRUE(buffer.equal(other.values()));
}

TEST(Arena, RefusesStatesThatDoNotFit) {
  const ParameterArena arena(parameters());
  State state;
  arena.save(arena.values(), "part/", state);
  at::Tensor buffer = arena.make_buffer();
  const auto message = [&] {
    try {
      arena.load(buffer, "part/", state);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(message(), "no error");
  state.tensors["part/conv.bias"] = at::zeros({6});
  EXPECT_EQ(message(), "the state holds part/conv.bias in another shape");
  state.tensors.erase("part/conv.bias");
  EXPECT_EQ(message(), "the state lacks part/conv.bias");
}

TEST(Arena, RefusesWhatItCannotHold) {
  EXPECT_EQ(message_of({}), "an arena needs at least one parameter");
  EXPECT_EQ(message_of({{"a", at::zeros({2})}, {"a", at::zeros({2})}}),
            "parameter a is named twice");
  EXPECT_EQ(message_of({{"a", at::zeros({2}, at::kDouble)}}), "parameter a is not float32");
  const at::Tensor elsewhere = at::empty({2}, at::TensorOptions().device(at::kMeta));
  EXPECT_EQ(message_of({{"a", at::zeros({2})}, {"b", elsewhere}}),
            "parameter b is on another device");
}

TEST(Gradients, AreTakenOutOfTheLeaves) {
  const ParameterArena arena(parameters());
  arena.leaf(1).mul(at::arange(5)).sum().backward();
  const Gradients gradients = Gradients::take(arena);
  ASSERT_EQ(gradients.tensors.size(), arena.entries().size());
  EXPECT_TRUE(gradients.tensors[1].equal(at::arange(5, at::kFloat)));
  for (std::size_t i = 0; i < arena.entries().size(); ++i) {
    EXPECT_FALSE(arena.leaf(i).grad().defined());
    EXPECT_EQ(gradients.tensors[i].defined(), i == 1);  // an unused leaf stands for zeros
  }
  arena.leaf(1).sum().backward();  // nothing is added to what was taken
  EXPECT_TRUE(Gradients::take(arena).tensors[1].equal(at::ones({5})));
  EXPECT_TRUE(gradients.tensors[1].equal(at::arange(5, at::kFloat)));
}

TEST(Gradients, AreLaidOutLikeTheLeaf) {
  const ParameterArena arena(parameters());
  const at::Tensor given = at::randn({5, 3, 3, 3});
  arena.leaf(0).mutable_grad() = given;
  arena.leaf(1).mutable_grad() = at::full({1}, 2.0F).expand({5});
  const Gradients gradients = Gradients::take(arena);
  EXPECT_NE(given.strides(), arena.leaf(0).strides());
  EXPECT_EQ(gradients.tensors[0].strides(), arena.leaf(0).strides());
  EXPECT_TRUE(gradients.tensors[0].equal(given));
  EXPECT_EQ(gradients.tensors[1].strides(), arena.leaf(1).strides());
  EXPECT_TRUE(gradients.tensors[1].equal(at::full({5}, 2.0F)));
}

}  // namespace
}  // namespace gala
