#include "gala/optim/optimizer.h"

#include <gtest/gtest.h>

#include "gala/base/error.h"
#include "tests/optim/bench.h"

namespace gala {
namespace {

std::string message_of(const std::string& spec) {
  try {
    make_optimizer(Spec::parse(spec));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Optimizer, MovesNothingWhenItMeasures) {
  for (const std::string spec : {"adam", "sgd:momentum=0.9"}) {
    Bench bench(spec);
    bench.step(0);
    const State before = bench.state();
    bench.measure(bench.gradients(1));
    EXPECT_TRUE(same_bytes(before, bench.state(), "values/")) << spec;
    EXPECT_TRUE(same_bytes(before, bench.state(), "displacement/")) << spec;
    EXPECT_FALSE(same_bytes(before, bench.state(), "moment1/")) << spec;
  }
}

TEST(Optimizer, AdvancesTheMomentsOfMaskedLayersAsIfTheyHadMoved) {
  for (const std::string spec : {"adam", "sgd:momentum=0.9"}) {
    Bench masked(spec), free(spec);
    const State start = masked.state();
    for (int step = 0; step < 10; ++step) {
      masked.step(step, {1, 0, 0, 0.01});
      free.step(step, {1, 1, 1, 1});
    }
    const State after = masked.state();
    for (const char* name : {"norm.weight", "norm.bias", "wide.weight"}) {
      EXPECT_TRUE(same_bytes(start, after, std::string("values/") + name)) << spec << " " << name;
      EXPECT_TRUE(same_bytes(start, after, std::string("displacement/") + name));
    }
    EXPECT_FALSE(same_bytes(start, after, "values/conv"));
    EXPECT_FALSE(same_bytes(start, after, "values/head.bias"));
    EXPECT_TRUE(same_bytes(after, free.state(), "moment"));
    EXPECT_EQ(after.values, free.state().values);
    EXPECT_EQ(after.values.at("optimizer_steps"), (std::vector<int>{10, 10, 10, 10}));
  }
}

TEST(Optimizer, ProposesTheSameForAMaskedLayerAsForOneThatMoves) {
  Bench masked("adam:rate=0.01"), free("adam:rate=0.01");
  for (int step = 0; step < 5; ++step) {
    const auto without = masked.step(step, {0, 0, 0, 0}), with = free.step(step);
    for (std::size_t l = 0; l < with.size(); ++l) {
      EXPECT_EQ(without[l].update_sq, with[l].update_sq);
      EXPECT_EQ(without[l].shift_sq, 0.0);
      EXPECT_EQ(cosine(without[l]), 1.0);
    }
  }
}

TEST(Optimizer, ScalesTheUpdateByTheWeight) {
  for (const std::string spec : {"adam:rate=0.01", "sgd:rate=0.1"}) {
    Bench whole(spec), part(spec);
    whole.step(0, {1, 1, 1, 1});
    part.step(0, {0.25, 0.01, 1, 0.5});
    const std::vector<float> weights{0.25F, 0.01F, 1.0F, 0.5F};
    for (std::size_t l = 0; l < weights.size(); ++l) {
      for (const std::size_t tensor : whole.layers[l].tensors) {
        const at::Tensor expected = whole.shift(tensor) * weights[l];
        EXPECT_TRUE(part.shift(tensor).equal(expected)) << spec << " " << l;
      }
    }
  }
}

TEST(Optimizer, KeepsTheDisplacementEqualToTheWayGone) {
  for (const Anchor anchor : {Anchor::kWindow, Anchor::kPrevious}) {
    Bench bench("adam:rate=0.01", DisplacementForm::kSum, anchor);
    std::vector<at::Tensor> anchors{bench.arena.values().clone(), bench.arena.values().clone()};
    for (int step = 0; step < 30; ++step) {
      if (step > 0 && step % 10 == 0) {
        bench.displacement.open_window();
        anchors.push_back(bench.arena.values().clone());
      }
      bench.step(step, {1, 0.01, step % 2 ? 1.0 : 0.0, 0.5});
      const at::Tensor& since = anchors[anchors.size() - (anchor == Anchor::kWindow ? 1 : 2)];
      const at::Tensor gap = bench.arena.values() - since - bench.kept();
      // Both round at every step, by half an ulp of values below 8.
      EXPECT_LT(gap.abs().max().item<double>(), 20 * 2.4e-7) << step;
      EXPECT_GT(bench.kept().abs().max().item<double>(), 5e-3);
    }
  }
}

TEST(Optimizer, TakesAnUndefinedGradientForZeros) {
  for (const std::string spec : {"adam:rate=0.01,weight_decay=0.1", "sgd:momentum=0.9"}) {
    Bench undefined(spec), zeros(spec);
    for (int step = 0; step < 4; ++step) {
      Gradients a = undefined.gradients(step), b = undefined.gradients(step);
      a.tensors[3] = at::Tensor();
      b.tensors[3].zero_();
      EXPECT_TRUE(same_bytes(undefined.step(a, {1, 1, 1, 1}), zeros.step(b, {1, 1, 1, 1})));
    }
    EXPECT_TRUE(same_bytes(undefined.state(), zeros.state())) << spec;
  }
}

TEST(Optimizer, StaysWhereItIsUnderZeroGradients) {
  for (const std::string spec : {"adam", "sgd:momentum=0.9"}) {
    Bench bench(spec);
    const State before = bench.state();
    const auto sums = bench.step({std::vector<at::Tensor>(6)}, {1, 1, 1, 1});
    for (const LayerSums& sum : sums) EXPECT_EQ(sum.update_sq, 0.0);
    EXPECT_TRUE(same_bytes(before, bench.state(), "displacement/")) << spec;
    EXPECT_TRUE(at::allclose(before.tensors.at("values/conv.weight"),
                             bench.state().tensors.at("values/conv.weight"), 0, 0));
  }
}

TEST(Optimizer, IsAsNewAfterAReset) {
  for (const std::string spec : {"adam", "sgd:momentum=0.9", "adam:moments=selected"}) {
    Bench used(spec), fresh(spec);
    const at::Tensor start = used.arena.values().clone();
    for (int step = 0; step < 5; ++step) used.step(step);
    used.optimizer->reset();
    used.arena.values().copy_(start);
    used.displacement.reset();
    for (int step = 5; step < 10; ++step) {
      EXPECT_TRUE(same_bytes(used.step(step), fresh.step(step))) << spec;
    }
    EXPECT_TRUE(same_bytes(used.state(), fresh.state())) << spec;
  }
}

TEST(Optimizer, GoesOnFromASavedStateBitForBit) {
  for (const std::string spec :
       {"adam:rate=0.01", "adam:moments=selected", "sgd:momentum=0.9,nesterov=yes"}) {
    const std::vector<double> weights{1, 0, 0.01, 1};
    Bench straight(spec), first(spec), second(spec);
    for (int step = 0; step < 10; ++step) {
      straight.step(step, weights);
      first.step(step, weights);
    }
    const State saved = first.state();
    second.step(77);  // must leave no trace
    second.load(saved);
    for (int step = 10; step < 20; ++step) {
      EXPECT_TRUE(same_bytes(straight.step(step, weights), second.step(step, weights))) << spec;
    }
    EXPECT_TRUE(same_bytes(straight.state(), second.state())) << spec;
    EXPECT_EQ(straight.state().values, second.state().values) << spec;
  }
}

TEST(Optimizer, RefusesAStateThatDoesNotFit) {
  Bench bench("adam");
  State state = bench.state();
  state.values["optimizer_steps"] = std::vector<int>{1, 2, 3};
  EXPECT_THROW(bench.load(state), Error);
  state.values.erase("optimizer_steps");
  EXPECT_THROW(bench.load(state), Error);
  state = Bench("sgd").state();  // has no second moment
  EXPECT_THROW(bench.load(state), Error);
}

/// A plain step is what `measure` and `apply` do together, whatever `moments` says.
TEST(Optimizer, MakesAPlainStepOfEveryLayer) {
  for (const std::string spec : {"adam:rate=0.01", "adam:rate=0.01,moments=selected",
                                 "sgd:rate=0.1,momentum=0.9,nesterov=yes,weight_decay=0.01"}) {
    Bench plain(spec), apart(spec);
    for (int step = 0; step < 5; ++step) {
      const Gradients gradients = plain.gradients(step);
      plain.optimizer->step(gradients.pointers());
      apart.step(gradients, {1, 1, 1, 1});
    }
    EXPECT_TRUE(same_bytes(plain.state(), apart.state(), "values/")) << spec;
    EXPECT_TRUE(same_bytes(plain.state(), apart.state(), "moment1/")) << spec;
    EXPECT_EQ(plain.state().values, apart.state().values) << spec;
    EXPECT_TRUE(plain.kept().eq(0).all().item<bool>()) << "the displacement is not its business";
  }
}

/// Weights are any finite numbers: a selector may scale the rate of a layer up, or turn it round.
TEST(Optimizer, TakesWeightsAboveOneAndBelowZero) {
  Bench whole("adam:rate=0.01"), part("adam:rate=0.01");
  whole.step(0, {1, 1, 1, 1});
  part.step(0, {2, -1, 1, 0.5});
  for (const std::size_t tensor : whole.layers[0].tensors) {
    EXPECT_TRUE(part.shift(tensor).equal(whole.shift(tensor) * 2));
  }
  for (const std::size_t tensor : whole.layers[1].tensors) {
    EXPECT_TRUE(part.shift(tensor).equal(-whole.shift(tensor)));
  }
}

TEST(Optimizer, TellsItsLearningRate) {
  EXPECT_EQ(make_optimizer(Spec::parse("adam"))->learning_rate(), 1e-3);
  EXPECT_EQ(make_optimizer(Spec::parse("sgd:rate=0.25"))->learning_rate(), 0.25);
}

TEST(Optimizer, RefusesOptionsOutOfRange) {
  EXPECT_EQ(message_of("adam:rate=-1"), "optimizer adam: rate must lie in [0, inf), not -1");
  EXPECT_EQ(message_of("adam:beta1=1"), "optimizer adam: beta1 must lie in [0, 1), not 1");
  EXPECT_EQ(message_of("adam:beta2=-0.1"), "optimizer adam: beta2 must lie in [0, 1), not -0.1");
  EXPECT_EQ(message_of("adam:epsilon=0"),
            "optimizer adam: epsilon must lie in [1e-30, inf), not 0");
  EXPECT_EQ(message_of("adam:weight_decay=-2"),
            "optimizer adam: weight_decay must lie in [0, inf), not -2");
  EXPECT_EQ(message_of("sgd:rate=-1"), "optimizer sgd: rate must lie in [0, inf), not -1");
  EXPECT_EQ(message_of("sgd:momentum=1"), "optimizer sgd: momentum must lie in [0, 1), not 1");
  EXPECT_EQ(message_of("sgd:weight_decay=-2"),
            "optimizer sgd: weight_decay must lie in [0, inf), not -2");
  EXPECT_EQ(message_of("sgd:nesterov=yes"), "optimizer sgd: nesterov needs a momentum above 0");
  EXPECT_EQ(message_of("adam:moments=some"),
            "optimizer adam: option moments cannot be \"some\" (expected all|selected)");
  EXPECT_EQ(message_of("adan"),
            "unknown optimizer \"adan\" (did you mean \"adam\"? known: adam, sgd)");
  EXPECT_EQ(message_of("adam:beta1=0,beta2=0,rate=0"), "no error");
}

}  // namespace
}  // namespace gala
