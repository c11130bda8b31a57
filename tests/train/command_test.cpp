// `gala train` as a user meets it: the program is run, stopped and killed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "gala/data/npy.h"
#include "gala/model/weights.h"
#include "tests/data/support.h"
#include "tests/train/domainbed_tree.h"

namespace gala {
namespace {

using test::read_text;
using test::TemporaryFolder;
using test::write_text;

/// A plan with its data in a folder of its own.
class TrainCommand : public testing::Test {
 protected:
  TrainCommand() {
    constexpr std::int64_t kCount = 40;
    std::vector<char> pixels(kCount * 32 * 32 * 3);
    std::vector<std::int64_t> labels;
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<char>(i * 7919 % 251);
    for (std::int64_t i = 0; i < kCount; ++i) labels.push_back(i % 3);
    const std::int64_t shape[] = {kCount, 32, 32, 3};
    write_npy(folder_ / "images.npy", "|u1", shape, [&](std::ostream& out) {
      out.write(pixels.data(), static_cast<std::streamsize>(pixels.size()));
    });
    write_npy(folder_ / "labels.npy", "<i8", std::span(shape, 1), [&](std::ostream& out) {
      out.write(reinterpret_cast<const char*>(labels.data()), kCount * 8);
    });
    write_plan("plan.toml", 2);
  }

  void write_plan(const std::string& name, int epochs) const {
    const std::string data = fmt::format(
        "'arrays:images=\"{0}/images.npy\",labels=\"{0}/labels.npy\"'", folder_.path().string());
    write_text(folder_ / name,
               fmt::format("[model]\nnetwork = \"wide_resnet:depth=10,width=1,classes=3\"\n"
                           "[data]\ntrain = {0}\nevaluation = {0}\naugmentation = \"crop_flip\"\n"
                           "[train]\nepochs = {1}\nbatch_size = 8\nwarmup_epochs = 1\n"
                           "checkpoint_every = 1\n[output]\ntype = \"float16\"\n",
                           data, epochs));
  }

  pid_t start(std::vector<std::string> words) const {
    const pid_t child = fork();
    if (child != 0) return child;
    words.insert(words.begin(), {GALA_TEST_PROGRAM, "train"});
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    setenv("OMP_NUM_THREADS", "1", 1);
    if (!freopen((folder_ / "out.txt").c_str(), "w", stdout)) _exit(99);
    if (!freopen((folder_ / "err.txt").c_str(), "w", stderr)) _exit(99);
    execv(GALA_TEST_PROGRAM, arguments.data());
    _exit(99);
  }

  /// The exit code, or minus the signal that ended it.
  static int wait_for(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  int run(const std::vector<std::string>& words) const { return wait_for(start(words)); }
  std::string plan(const std::string& name = "plan.toml") const {
    return (folder_ / name).string();
  }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  std::string output() const { return read_text(folder_ / "out.txt"); }
  std::string errors() const { return read_text(folder_ / "err.txt"); }

  /// Waits for a file, for a minute at most.
  static bool appears(const std::filesystem::path& path) {
    for (int i = 0; i < 6000 && !std::filesystem::exists(path); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return std::filesystem::exists(path);
  }

  /// Waits until the program has written its checkpoint so many times more, for a minute at most.
  static bool rewritten(const std::filesystem::path& path, int times) {
    std::filesystem::file_time_type last{};
    for (int i = 0; i < 60000 && times > 0; ++i) {
      std::error_code missing;
      const auto now = std::filesystem::last_write_time(path, missing);
      if (!missing && now != last) {
        last = now;
        --times;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return times == 0;
  }

  TemporaryFolder folder_;
};

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
