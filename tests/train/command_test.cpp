// `gala train` as a user meets it: the program is run, stopped and killed.
#include <gtest/gtest.h>

#include "gala/model/weights.h"
#include "tests/data/support.h"
#include "tests/train/domainbed_tree.h"
#include "tests/train/train_program.h"

namespace gala {
namespace {

using test::read_text;
using test::write_text;

using TrainCommand = test::TrainProgram;

TEST_F(TrainCommand, WritesWeightsAndPrintsTheScore) {
  ASSERT_EQ(run({plan(), "--out", file("a.safetensors")}), 0) << errors();
  EXPECT_CONTAINS(output(), "evaluation");
  EXPECT_CONTAINS(output(), "a.safetensors");
  EXPECT_CONTAINS(errors(), "epoch 2/2");
  EXPECT_TRUE(std::filesystem::exists(folder_ / "a.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a.safetensors.checkpoint"));
  // Asked again to go on, it finds the work done.
  const auto written = std::filesystem::last_write_time(folder_ / "a.safetensors");
  ASSERT_EQ(run({plan(), "--out", file("a.safetensors"), "--resume"}), 0) << errors();
  EXPECT_CONTAINS(errors(), "finished already");
  EXPECT_EQ(std::filesystem::last_write_time(folder_ / "a.safetensors"), written);
}

TEST_F(TrainCommand, GoesOnAfterAKillToTheSameBytes) {
  write_plan("long.toml", 12);
  ASSERT_EQ(run({plan("long.toml"), "--out", file("straight.safetensors"), "--quiet"}), 0)
      << errors();
  EXPECT_EQ(errors(), "");
  const pid_t child = start({plan("long.toml"), "--out", file("killed.safetensors")});
  const bool begun = appears(folder_ / "killed.safetensors.checkpoint");
  kill(child, SIGKILL);
  ASSERT_EQ(wait_for(child), -SIGKILL);
  ASSERT_TRUE(begun);
  // Work is not thrown away by mistake.
  EXPECT_EQ(run({plan("long.toml"), "--out", file("killed.safetensors")}), 2);
  EXPECT_CONTAINS(errors(), "--resume");
  ASSERT_EQ(run({plan("long.toml"), "--out", file("killed.safetensors"), "--resume"}), 0)
      << errors();
  EXPECT_CONTAINS(errors(), "resume  after step");
  EXPECT_EQ(read_text(folder_ / "killed.safetensors"), read_text(folder_ / "straight.safetensors"));
}

TEST_F(TrainCommand, SavesAndSaysHowToGoOnWhenInterrupted) {
  write_plan("long.toml", 1000);
  const pid_t child = start({plan("long.toml"), "--out", file("a.safetensors")});
  const bool begun = appears(folder_ / "a.safetensors.checkpoint");
  kill(child, SIGINT);
  EXPECT_EQ(wait_for(child), 130);
  ASSERT_TRUE(begun);
  EXPECT_CONTAINS(errors(), "--resume");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a.safetensors"));
}

TEST_F(TrainCommand, SavesWhenTheTerminalCloses) {
  write_plan("long.toml", 1000);
  const pid_t child = start({plan("long.toml"), "--out", file("a.safetensors")});
  const bool begun = appears(folder_ / "a.safetensors.checkpoint");
  kill(child, SIGHUP);
  kill(child, SIGHUP);  // the shell and the terminal may both send it
  EXPECT_EQ(wait_for(child), 130);
  ASSERT_TRUE(begun);
  EXPECT_CONTAINS(errors(), "--resume");
}

TEST_F(TrainCommand, GoesOnWithTheSameDataByAnotherPath) {
  write_plan("long.toml", 1000);
  const pid_t child = start({plan("long.toml"), "--out", file("a.safetensors")});
  const bool begun = appears(folder_ / "a.safetensors.checkpoint");
  kill(child, SIGINT);
  EXPECT_EQ(wait_for(child), 130);
  ASSERT_TRUE(begun);
  std::filesystem::create_symlink("images.npy", folder_ / "link.npy");
  std::filesystem::copy(folder_ / "images.npy", folder_ / "other.npy");
  const auto respelled = [&](const std::string& name) {
    std::string text = read_text(folder_ / "long.toml");
    const std::string train = text.substr(0, text.find("evaluation"));
    const std::size_t at = train.find("images.npy");
    write_text(folder_ / "again.toml", text.replace(at, std::string("images.npy").size(), name));
  };
  respelled("other.npy");
  EXPECT_EQ(run({plan("again.toml"), "--out", file("a.safetensors"), "--resume"}), 2);
  EXPECT_CONTAINS(errors(), "was saved with data ");
  respelled("./link.npy");
  const pid_t second = start({plan("again.toml"), "--out", file("a.safetensors"), "--resume"});
  ASSERT_TRUE(rewritten(folder_ / "a.safetensors.checkpoint", 3));
  kill(second, SIGINT);
  EXPECT_EQ(wait_for(second), 130) << errors();
  EXPECT_CONTAINS(errors(), "resume  after step");
}

TEST_F(TrainCommand, KeepsTheBestCheckpointOfSeveralDomainsThroughKills) {
  test::write_domainbed_tree(folder_ / "set", 5);
  write_text(folder_ / "domains.toml", test::domainbed_plan(folder_ / "set", 30));
  ASSERT_EQ(run({plan("domains.toml"), "--set", "env=2", "--set", "trial=3", "--threads", "1"}), 0)
      << errors();
  const auto straight = folder_ / "set_env2_trial3.safetensors";
  EXPECT_CONTAINS(errors(), "30 steps of 4 images from each of 3 domains");
  EXPECT_CONTAINS(errors(), "the best so far");
  EXPECT_CONTAINS(output(), "mean of the domains");
  const std::string expected = read_text(straight);

  const auto checkpoint = folder_ / "set_env2_trial3.safetensors.checkpoint";
  std::filesystem::remove(straight);
  for (int stop = 0; stop < 3; ++stop) {
    const pid_t child = start(
        {plan("domains.toml"), "--set", "env=2", "--set", "trial=3", "--threads", "1", "--resume"});
    const bool moved = rewritten(checkpoint, 5);
    kill(child, SIGKILL);
    ASSERT_EQ(wait_for(child), -SIGKILL) << errors();
    ASSERT_TRUE(moved);
  }
  ASSERT_EQ(run({plan("domains.toml"), "--set", "env=2", "--set", "trial=3", "--threads", "1",
                 "--resume"}),
            0)
      << errors();
  EXPECT_EQ(read_text(straight), expected);

  const nlohmann::json training = read_weights(straight).metadata.at("training");
  EXPECT_EQ(training.at("parameters").at("env"), "2");
  EXPECT_EQ(training.at("seed"), 3);
  // Of the evaluations, the file holds the first best, and its score is that one's.
  const auto& history = training.at("history");
  ASSERT_EQ(history.size(), 11U);  // after steps 0, 3, ..., 27 and 29
  double best = -1;
  std::int64_t best_step = 0;
  for (const auto& point : history) {
    if (point.at("accuracy") > best) {
      best = point.at("accuracy");
      best_step = point.at("step");
    }
  }
  EXPECT_EQ(training.value("kept_step", std::int64_t{30}), best_step);
  EXPECT_DOUBLE_EQ(training.at("evaluation").at("mean_accuracy"), best);
}

TEST_F(TrainCommand, SaysWhichWeightsOfAnotherHeadWereNotTaken) {
  ASSERT_EQ(run({plan(), "--out", file("three.safetensors")}), 0) << errors();
  test::write_domainbed_tree(folder_ / "set", 5);
  std::filesystem::rename(folder_ / "set/art/dog", folder_ / "set/art/cat");
  for (const auto& name : test::kEnvironments) {
    std::filesystem::create_directory(folder_ / "set" / name / "cat");
    std::filesystem::create_directory(folder_ / "set" / name / "dog");
  }
  write_text(folder_ / "domains.toml", test::domainbed_plan(folder_ / "set", 2));
  ASSERT_EQ(run({plan("domains.toml"), "--set", "model.init=" + file("three.safetensors")}), 0)
      << errors();
  EXPECT_CONTAINS(errors(),
                  "not taken, for the classes are others: fc.weight [3, 64], fc.bias [3]");
  EXPECT_CONTAINS(errors(), "classes=4");
  EXPECT_EQ(errors().find("does not say how its images"), std::string::npos);
}

TEST_F(TrainCommand, NamesAllThatIsWrongWithADomainBedPlanAtOnce) {
  write_text(folder_ / "domains.toml", test::domainbed_plan(folder_ / "nowhere", 0));
  EXPECT_EQ(run({plan("domains.toml"), "--set", "enw=2", "--set", "novalue", "--set",
                 "model.init=missing.pt", "--set", "train.precision=half"}),
            2);
  for (const char* part : {"--set: \"novalue\" is not NAME=VALUE", "no parameter \"enw\"",
                           "train.steps must be from 1", "data.train: ", "data.evaluation: ",
                           "model.init: ", "train.precision cannot be", "float32|tf32|bf16"}) {
    EXPECT_CONTAINS(errors(), part);
  }
  test::write_domainbed_tree(folder_ / "set", 2);
  write_text(folder_ / "domains.toml", test::domainbed_plan(folder_ / "set", 2));
  EXPECT_EQ(run({plan("domains.toml"), "--set", "env=4"}), 2);
  EXPECT_CONTAINS(errors(), "no environment \"4\" (expected 0 to 3 or a name)");
}

TEST_F(TrainCommand, NamesAllThatIsWrongBeforeTheFirstStep) {
  write_text(
      folder_ / "bad.toml",
      "[model]\nnetwork = \"wide_resnet:depth=12\"\n[data]\ntrain = \"folder:path=missing\"\n"
      "[train]\nepoch = 3\n");
  EXPECT_EQ(run({plan("bad.toml"), "--device", "tpu"}), 2);
  for (const char* part : {"5 problems", "has no key \"epoch\"", "model.network: ", "data.train: ",
                           "output.weights is missing", "--device tpu: unknown"}) {
    EXPECT_CONTAINS(errors(), part);
  }
  EXPECT_EQ(run({plan("nowhere.toml")}), 2);
  EXPECT_EQ(run({plan(), "--out", file("no/such/folder/a.safetensors")}), 2);
}

}  // namespace
}  // namespace gala
