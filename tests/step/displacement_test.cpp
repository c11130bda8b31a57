#include "gala/step/displacement.h"

#include <gtest/gtest.h>

#include <cstring>

#include "gala/tensor/arena.h"
#include "gala/tensor/state_archive.h"
#include "gala/tensor/torch_workspace.h"

namespace gala {
namespace {

using Vector = std::vector<float>;
using Combination = std::tuple<DisplacementForm, Anchor>;

std::vector<NamedTensor> parameters() {
  at::manual_seed(3);
  return {{"weight", at::randn({4, 3, 2, 2}).contiguous(at::MemoryFormat::ChannelsLast)},
          {"bias", at::randn({7})}};
}

Vector to_vector(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().contiguous().flatten();
  return {flat.const_data_ptr<float>(), flat.const_data_ptr<float>() + flat.numel()};
}

Displacement make(const ParameterArena& arena, Workspace& workspace, DisplacementForm form,
                  Anchor anchor) {
  return {arena.values().const_data_ptr<float>(), arena.size(), workspace, form, anchor};
}

/// Adds an applied update, as the passes do.
void add(const ParameterArena& arena, const Displacement& displacement, std::size_t tensor,
         const at::Tensor& delta) {
  const DisplacementView view = displacement.view();
  if (view.difference) return;
  arena.view(arena.as_buffer(displacement.buffer()), tensor).add_(delta);
  if (view.recent) arena.view(arena.as_buffer(displacement.recent()), tensor).add_(delta);
}

/// TD of one tensor, as the passes see it.
at::Tensor shift(const ParameterArena& arena, const Displacement& displacement,
                 std::size_t tensor) {
  const at::Tensor part = arena.view(arena.as_buffer(displacement.buffer()), tensor);
  return displacement.view().difference ? arena.view(arena.values(), tensor) - part : part;
}

/// All that ever happened to one tensor, and TD computed from it anew each time.
struct History {
  std::vector<Vector> values;         ///< before each step, and now
  std::vector<Vector> deltas;         ///< of each step
  std::vector<std::size_t> openings;  ///< steps before which a window opened

  Vector shift(DisplacementForm form, Anchor anchor) const {
    const std::size_t back = anchor == Anchor::kWindow || openings.size() < 2 ? 1 : 2;
    const std::size_t since = openings[openings.size() - back];
    Vector result(values[0].size(), 0.0F);
    if (form == DisplacementForm::kDifference) {
      for (std::size_t i = 0; i < result.size(); ++i) {
        result[i] = values.back()[i] - values[since][i];
      }
      return result;
    }
    for (std::size_t step = since; step < deltas.size(); ++step) {
      for (std::size_t i = 0; i < result.size(); ++i) result[i] += deltas[step][i];
    }
    return result;
  }
};

class DisplacementIn : public testing::TestWithParam<Combination> {
 protected:
  DisplacementForm form = std::get<0>(GetParam());
  Anchor anchor = std::get<1>(GetParam());
  ParameterArena arena{parameters()};
  TorchWorkspace workspace{at::kCPU};
  Displacement displacement = make(arena, workspace, form, anchor);
  std::vector<History> histories;

  void SetUp() override { start_histories(); }

  void start_histories() {
    histories.assign(2, {});
    for (std::size_t t = 0; t < 2; ++t) histories[t] = {{to_vector(arena.leaf(t))}, {}, {0}};
  }

  void step() {
    for (std::size_t t = 0; t < 2; ++t) {
      const at::Tensor delta = at::randn_like(arena.leaf(t)).detach() * 1e-3;
      arena.view(arena.values(), t).add_(delta);
      add(arena, displacement, t, delta);
      histories[t].deltas.push_back(to_vector(delta));
      histories[t].values.push_back(to_vector(arena.leaf(t)));
    }
  }

  void open_window() {
    displacement.open_window();
    for (History& history : histories) history.openings.push_back(history.deltas.size());
  }

  void expect_agreement(const Displacement& given) {
    for (std::size_t t = 0; t < 2; ++t) {
      EXPECT_EQ(to_vector(shift(arena, given, t)), histories[t].shift(form, anchor));
    }
  }
};

TEST_P(DisplacementIn, SeveralWindowsAgreesWithTheHistory) {
  expect_agreement(displacement);
  for (const int steps : {3, 1, 4, 0, 2, 5}) {
    for (int i = 0; i < steps; ++i) {
      step();
      expect_agreement(displacement);
    }
    open_window();
    expect_agreement(displacement);
  }
  EXPECT_EQ(displacement.form(), form);
  EXPECT_EQ(static_cast<bool>(displacement.recent()), anchor == Anchor::kPrevious);
}

TEST_P(DisplacementIn, AResetStartsAnew) {
  for (int i = 0; i < 3; ++i) step();
  open_window();
  step();
  displacement.reset();
  start_histories();
  expect_agreement(displacement);
  EXPECT_EQ(to_vector(shift(arena, displacement, 0)), Vector(48, 0.0F));
  step();
  open_window();
  step();
  expect_agreement(displacement);
}

TEST_P(DisplacementIn, ASavedStateGoesOn) {
  for (int i = 0; i < 3; ++i) step();
  open_window();
  step();
  State state;
  StateArchive saving(arena, state);
  displacement.remember(saving);
  EXPECT_EQ(state.tensors.size(), anchor == Anchor::kPrevious ? 4u : 2u);
  EXPECT_TRUE(state.tensors.contains("displacement/weight"));

  Displacement loaded = make(arena, workspace, form, anchor);
  const State saved = state;
  StateArchive loading(arena, saved);
  loaded.remember(loading);
  expect_agreement(loaded);
  std::swap(displacement, loaded);
  step();
  expect_agreement(displacement);
  open_window();
  step();
  expect_agreement(displacement);
}

std::string name_of(const testing::TestParamInfo<Combination>& test) {
  return fmt::format("{}_{}", enum_names(DisplacementForm{})[test.index / 2],
                     enum_names(Anchor{})[test.index % 2]);
}

INSTANTIATE_TEST_SUITE_P(FormsAndAnchors, DisplacementIn,
                         testing::Combine(testing::Values(DisplacementForm::kSum,
                                                          DisplacementForm::kDifference),
                                          testing::Values(Anchor::kWindow, Anchor::kPrevious)),
                         name_of);

TEST(Displacement, KeepsStepsTooSmallForTheParameterOnlyAsASum) {
  const ParameterArena arena(std::vector<NamedTensor>{{"scale", at::ones({3})}});
  TorchWorkspace workspace(at::kCPU);
  const Displacement sum = make(arena, workspace, DisplacementForm::kSum, Anchor::kWindow);
  const Displacement difference =
      make(arena, workspace, DisplacementForm::kDifference, Anchor::kWindow);
  const at::Tensor delta = at::full({3}, 5e-8F);
  arena.view(arena.values(), 0).add_(delta);
  add(arena, sum, 0, delta);
  add(arena, difference, 0, delta);
  EXPECT_TRUE(shift(arena, sum, 0).equal(delta));
  EXPECT_TRUE(shift(arena, difference, 0).equal(at::zeros({3})));
}

}  // namespace
}  // namespace gala
