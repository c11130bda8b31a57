// `gala train` in several processes, as torchrun starts them and by plain variables.
#include <gtest/gtest.h>

#include <map>

#include "gala/model/weights.h"
#include "tests/data/support.h"
#include "tests/device/free_port.h"
#include "tests/model/relative_error.h"
#include "tests/train/train_program.h"

namespace gala {
namespace {

using test::read_text;
using test::Variables;
using test::write_text;

class Processes : public test::TrainProgram {
 protected:
  using Words = std::vector<std::string>;
  using Codes = std::vector<int>;

  static Variables place(int rank, int size, int port) {
    return {{"RANK", std::to_string(rank)},
            {"WORLD_SIZE", std::to_string(size)},
            {"LOCAL_RANK", std::to_string(rank)},
            {"MASTER_ADDR", "127.0.0.1"},
            {"MASTER_PORT", std::to_string(port)}};
  }

  static std::string name_of(int rank) { return fmt::format("rank{}", rank); }

  std::vector<pid_t> start_all(const Words& words, int size) const {
    const int port = test::free_port();
    std::vector<pid_t> children;
    for (int rank = 0; rank < size; ++rank) {
      children.push_back(start(words, place(rank, size, port), name_of(rank)));
    }
    return children;
  }

  static Codes wait_all(const std::vector<pid_t>& children) {
    Codes codes;
    for (const pid_t child : children) codes.push_back(wait_for(child));
    return codes;
  }

  Codes run_all(const Words& words, int size) const { return wait_all(start_all(words, size)); }

  std::string all_errors(int size) const {
    std::string text;
    for (int rank = 0; rank < size; ++rank) {
      text += fmt::format("--- rank {}\n{}", rank, errors(name_of(rank)));
    }
    return text;
  }

  /// The plan in float32, to `name`.
  Words training(const std::string& name, const Words& more = {},
                 const char* of = "plan.toml") const {
    Words words = {plan(of),
                   "--out",
                   file(name),
                   "--set",
                   "output.type=float32",
                   "--set",
                   "train.optimizer=sgd:rate=0.002,momentum=0.5"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  double error_between(const std::string& name, const std::string& expected) const {
    const WeightFile one = read_weights(file(name)), other = read_weights(file(expected));
    EXPECT_EQ(one.tensors.size(), other.tensors.size());
    double worst = 0;
    for (std::size_t i = 0; i < one.tensors.size(); ++i) {
      EXPECT_EQ(one.tensors[i].name, other.tensors[i].name);
      worst = std::max(worst, relative_error(one.tensors[i].tensor, other.tensors[i].tensor));
    }
    return worst;
  }

  nlohmann::json record_of(const std::string& name) const {
    return read_weights(file(name)).metadata.at("training");
  }
};

/// Of every tensor, of which the norms' shifts are small; tests/train/shares_test.cpp says what lies between one
/// process and several.
constexpr double kRounding = 1e-3;

TEST_F(Processes, GiveTheWeightsOfASingleOneButForRounding) {
  ASSERT_EQ(run(training("alone.safetensors")), 0) << errors();
  for (const int size : {2, 4}) {
    const std::string name = fmt::format("by{}.safetensors", size);
    ASSERT_EQ(run_all(training(name), size), Codes(static_cast<std::size_t>(size), 0))
        << all_errors(size);
    const double error = error_between(name, "alone.safetensors");
    EXPECT_LT(error, kRounding);
    RecordProperty(fmt::format("error_of_{}", size), fmt::format("{:.1e}", error));
    // One speaks and writes for all.
    EXPECT_CONTAINS(errors("rank0"), fmt::format("share   {} processes", size));
    EXPECT_CONTAINS(errors("rank0"), "epoch 2/2");
    EXPECT_CONTAINS(output("rank0"), name);
    for (int rank = 1; rank < size; ++rank) {
      EXPECT_EQ(errors(name_of(rank)), "");
      EXPECT_EQ(output(name_of(rank)), "");
    }
    nlohmann::json record = record_of(name), alone = record_of("alone.safetensors");
    EXPECT_EQ(record.at("processes"), size);
    EXPECT_EQ(record.at("settings"), alone.at("settings"));
    EXPECT_EQ(record.at("evaluation"), alone.at("evaluation"));
    // Twice the same bytes, whoever was quicker.
    ASSERT_EQ(run_all(training("again.safetensors"), size),
              Codes(static_cast<std::size_t>(size), 0));
    EXPECT_EQ(read_text(file("again.safetensors")), read_text(file(name)));
  }
}

TEST_F(Processes, LeaveOutWhatASingleOneLeavesOut) {
  // Of 40 images three processes take four batches of nine; four images are left out.
  const Words nine = {"--set", "train.batch_size=9"};
  ASSERT_EQ(run(training("alone.safetensors", nine)), 0) << errors();
  ASSERT_EQ(run_all(training("by3.safetensors", nine), 3), (Codes{0, 0, 0})) << all_errors(3);
  EXPECT_LT(error_between("by3.safetensors", "alone.safetensors"), kRounding);
  EXPECT_EQ(record_of("by3.safetensors").at("steps"), 8);
}

TEST_F(Processes, EndWhenOneIsKilledAndGoOnToTheSameBytes) {
  write_plan("long.toml", 12);
  ASSERT_EQ(run_all(training("straight.safetensors", {}, "long.toml"), 2), (Codes{0, 0}))
      << all_errors(2);
  for (const int victim : {1, 0}) {
    const std::string name = fmt::format("killed{}.safetensors", victim);
    const auto children = start_all(training(name, {}, "long.toml"), 2);
    ASSERT_TRUE(rewritten(file(name) + ".checkpoint", 3));
    kill(children[static_cast<std::size_t>(victim)], SIGKILL);
    const auto begin = std::chrono::steady_clock::now();
    const Codes codes = wait_all(children);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
    EXPECT_EQ(codes[static_cast<std::size_t>(victim)], -SIGKILL);
    EXPECT_EQ(codes[static_cast<std::size_t>(1 - victim)], 1);
    EXPECT_CONTAINS(errors(name_of(1 - victim)),
                    fmt::format("error: rank {} of 2 is gone: it ended", victim));
    if (victim == 1) {
      EXPECT_CONTAINS(errors("rank0"), "to go on: the same commands with --resume");
    }
    ASSERT_EQ(run_all(training(name, {"--resume"}, "long.toml"), 2), (Codes{0, 0}))
        << all_errors(2);
    EXPECT_CONTAINS(errors("rank0"), "resume  after step");
    EXPECT_EQ(read_text(file(name)), read_text(file("straight.safetensors")));
  }
}

TEST_F(Processes, StopTogetherWhicheverIsInterrupted) {
  write_plan("long.toml", 12);
  ASSERT_EQ(run_all(training("straight.safetensors", {}, "long.toml"), 2), (Codes{0, 0}))
      << all_errors(2);
  for (const int asked : {0, 1}) {
    const std::string name = fmt::format("asked{}.safetensors", asked);
    const auto children = start_all(training(name, {}, "long.toml"), 2);
    ASSERT_TRUE(rewritten(file(name) + ".checkpoint", 2));
    kill(children[static_cast<std::size_t>(asked)], SIGINT);
    EXPECT_EQ(wait_all(children), (Codes{130, 130})) << all_errors(2);
    EXPECT_CONTAINS(errors("rank0"), "to go on: the same command with --resume");
    // Another number of processes goes on as well, and ends where rounding lets it.
    const int size = asked == 0 ? 2 : 4;
    ASSERT_EQ(run_all(training(name, {"--resume"}, "long.toml"), size),
              Codes(static_cast<std::size_t>(size), 0))
        << all_errors(size);
    EXPECT_CONTAINS(errors("rank0"), "resume  after step");
    if (size == 2) {
      EXPECT_EQ(read_text(file(name)), read_text(file("straight.safetensors")));
    }
  }
}

TEST_F(Processes, GiveUpOneThatHangs) {
  write_plan("long.toml", 1000);
  const auto children = start_all(training("a.safetensors", {"--wait", "3"}, "long.toml"), 2);
  ASSERT_TRUE(rewritten(file("a.safetensors.checkpoint"), 2));
  kill(children[1], SIGSTOP);
  EXPECT_EQ(wait_for(children[0]), 1);
  EXPECT_CONTAINS(errors("rank0"), "rank 1 of 2 has been silent for 3 s");
  kill(children[1], SIGCONT);
  EXPECT_EQ(wait_for(children[1]), 1);
  EXPECT_CONTAINS(errors("rank1"), "rank 0 of 2 is gone");
}

TEST_F(Processes, ReadAndWriteNothingButRankZero) {
  ASSERT_EQ(run_all(training("a.safetensors"), 2), (Codes{0, 0})) << all_errors(2);
  ASSERT_EQ(run_all(training("a.safetensors", {"--resume"}), 2), (Codes{0, 0})) << all_errors(2);
  EXPECT_CONTAINS(errors("rank0"), "finished already");
  EXPECT_EQ(errors("rank1"), "");
  // What stands in the way of rank 0 ends all.
  write_text(file("b.safetensors.checkpoint"), "no state");
  EXPECT_EQ(run_all(training("b.safetensors"), 2), (Codes{2, 1}));
  EXPECT_CONTAINS(errors("rank0"), "holds a run that was stopped: give --resume");
  EXPECT_CONTAINS(errors("rank1"), "rank 0 of 2 is gone");
  EXPECT_EQ(run_all(training("b.safetensors", {"--resume"}), 2), (Codes{2, 1}));
  EXPECT_CONTAINS(errors("rank0"), "b.safetensors.checkpoint");
}

TEST_F(Processes, RefuseAnEnvironmentThatMakesNoSense) {
  const auto expect = [&](const Variables& variables, const std::string& part,
                          const Words& more = {}) {
    EXPECT_EQ(run(training("a.safetensors", more), variables), 2) << part;
    EXPECT_CONTAINS(errors(), part);
  };
  const int port = test::free_port();
  const auto with = [&](const char* name, const char* value) {
    Variables variables = place(0, 2, port);
    variables[name] = value;
    return variables;
  };
  expect({{"WORLD_SIZE", "2"}}, "WORLD_SIZE is 2, but RANK is not set");
  expect({{"RANK", "1"}}, "RANK is 1, but WORLD_SIZE is not set");
  expect(with("RANK", "2"), "RANK cannot be 2 where WORLD_SIZE is 2 (expected 0 to 1)");
  expect(with("WORLD_SIZE", "many"), "WORLD_SIZE cannot be \"many\"");
  expect(with("MASTER_ADDR", ""), "MASTER_ADDR is not set");
  expect(with("MASTER_PORT", "0"), "MASTER_PORT cannot be \"0\"");
  expect(with("MASTER_ADDR", "no.such.host.invalid"), "MASTER_ADDR no.such.host.invalid",
         {"--wait", "2"});
  expect(place(0, 3, port), "train.batch_size: 8 images cannot be shared by 3 processes");
  expect(place(1, 2, port), "rank 1 of 2: nobody answers at MASTER_ADDR 127.0.0.1",
         {"--wait", "1"});
  expect(place(0, 2, port), "rank 0 of 2: rank 1 did not come", {"--wait", "1"});
  expect({}, "--wait must be from 1", {"--wait", "0"});
  EXPECT_FALSE(std::filesystem::exists(file("a.safetensors")));
}

TEST_F(Processes, RefuseToTrainDifferentThings) {
  const int port = test::free_port();
  const pid_t zero = start(training("a.safetensors"), place(0, 2, port), "rank0");
  const pid_t one = start(training("a.safetensors", {"--set", "train.label_smoothing=0.5"}),
                          place(1, 2, port), "rank1");
  EXPECT_EQ(wait_all({zero, one}), (Codes{2, 2}));
  for (const char* name : {"rank0", "rank1"}) {
    EXPECT_CONTAINS(errors(name), "rank 1 has label_smoothing 0.5, rank 0 has 0.0");
  }
}

#ifdef GALA_TEST_PYTHON
TEST_F(Processes, AreStartedByTorchrun) {
  ASSERT_EQ(run(training("alone.safetensors")), 0) << errors();
  const std::string command = fmt::format(
      "exec {} -m torch.distributed.run --no-python --nproc-per-node 2 --master-port {} {} train "
      "'{}' "
      ">{} 2>&1",
      GALA_TEST_PYTHON, test::free_port(), GALA_TEST_PROGRAM,
      fmt::join(training("by2.safetensors"), "' '"), file("torchrun.txt"));
  setenv("OMP_NUM_THREADS", "1", 1);
  ASSERT_EQ(std::system(command.c_str()), 0) << read_text(file("torchrun.txt"));
  EXPECT_CONTAINS(read_text(file("torchrun.txt")), "share   2 processes");
  EXPECT_LT(error_between("by2.safetensors", "alone.safetensors"), kRounding);
}
#endif

}  // namespace
}  // namespace gala
