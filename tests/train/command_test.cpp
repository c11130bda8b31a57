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
#include "tests/data/support.h"

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
