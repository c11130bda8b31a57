#pragma once
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <thread>

#include "gala/base/error.h"
#include "tests/cli/run_gala.h"

namespace gala::test {

/// `gala run` on the demo's images with a tiny network that knows nothing.
class RunCommand : public GalaProgram {
 protected:
  RunCommand() {
    write("plan.toml", fmt::format(R"(
[plan]
name = "try"
title = "A try"
[run]
protocol = 'continual:generate=yes,images=50,corruption="contrast,brightness",path={}/cifar10_test_2000.png'
model = "wide_resnet:depth=10,width=1"
batch_size = 25
backbone = "tiny"
[axes]
loss = ["pseudo_label:beta=0.05", "shot"]
seed = [0, 1]
[[row]]
name = "Source"
select = "none"
norm = "source"
[[row]]
name = "GALA"
select = "gala:window=2"
trace = true
[[row]]
name = "Random"
select = "random"
)",
                                   GALA_TEST_ASSETS));
  }

  /// The records of a store by key, without what the machine and the clock put into them.
  std::map<std::string, nlohmann::json> records(const std::string& store) const {
    std::map<std::string, nlohmann::json> found;
    for (const auto& line : read_json_lines(store + "/records.jsonl")) {
      if (line.at("kind").get<std::string>() != "run") continue;
      nlohmann::json record = line;
      record.erase("cost");
      record.erase("provenance");
      EXPECT_TRUE(found.emplace(record.at("key").get<std::string>(), record).second);
    }
    return found;
  }

  /// Starts a run, waits until the store has `count` whole lines, and sends the signal.
  Ending stop_after(std::size_t count, int signal, const std::string& arguments) {
    const pid_t process = start(words(arguments), "", -1);
    const auto lines = [&] {
      const std::filesystem::path file = path("store/records.jsonl");
      if (!std::filesystem::exists(file)) return std::size_t{0};
      const std::string text = read("store/records.jsonl");
      return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    };
    siginfo_t over{};
    while (lines() < count && over.si_pid == 0) {
      ::waitid(P_PID, static_cast<id_t>(process), &over, WEXITED | WNOHANG | WNOWAIT);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ::kill(process, signal);
    return wait_for(process);
  }
};

}  // namespace gala::test
