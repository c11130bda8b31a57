#pragma once
// `gala train` in processes of its own.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "gala/data/npy.h"
#include "tests/data/support.h"

namespace gala::test {

/// Of the environment.
using Variables = std::map<std::string, std::string>;

/// A plan with its data in a folder of its own.
class TrainProgram : public testing::Test {
 protected:
  TrainProgram() {
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

  /// Begins the program with what `variables` sets beside the environment; what it says goes to
  /// `name`.out and `name`.err.
  pid_t start(std::vector<std::string> words, const Variables& variables = {},
              const std::string& name = "alone") const {
    const pid_t child = fork();
    if (child != 0) return child;
    for (const auto& [variable, value] : variables) setenv(variable.c_str(), value.c_str(), 1);
    words.insert(words.begin(), {GALA_TEST_PROGRAM, "train"});
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    setenv("OMP_NUM_THREADS", "1", 1);
    if (!freopen((folder_ / (name + ".out")).c_str(), "w", stdout)) _exit(99);
    if (!freopen((folder_ / (name + ".err")).c_str(), "w", stderr)) _exit(99);
    execv(GALA_TEST_PROGRAM, arguments.data());
    _exit(99);
  }

  /// The exit code, or minus the signal that ended it.
  static int wait_for(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  int run(const std::vector<std::string>& words, const Variables& variables = {}) const {
    return wait_for(start(words, variables));
  }
  std::string plan(const std::string& name = "plan.toml") const {
    return (folder_ / name).string();
  }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  std::string output(const std::string& name = "alone") const {
    return read_text(folder_ / (name + ".out"));
  }
  std::string errors(const std::string& name = "alone") const {
    return read_text(folder_ / (name + ".err"));
  }

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

}  // namespace gala::test
