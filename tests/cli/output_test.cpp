#include <fmt/format.h>
#include <cstdio>

#include "gala/adapt/state_file.h"
#include "tests/cli/run_gala.h"

namespace gala::test {
namespace {

class Output : public GalaProgram {
 protected:
  void SetUp() override {
    write_source_weights();
    write_pictures("x.npy", 24);
    write_labels("y.npy", 24);
  }

  const std::string base_ = "adapt --weights source.safetensors --batch-size 8 --loss entropy ";
  const std::string labelled_ = base_ + "--data arrays:images=x.npy,labels=y.npy ";
  const std::string unlabelled_ = base_ + "--data arrays:images=x.npy ";
};

std::vector<std::string> keys_of(const nlohmann::ordered_json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

TEST_F(Output, TraceHasOneObjectAStep) {
  ASSERT_EQ(run(labelled_ + "--trace t.jsonl").code, 0);
  const auto steps = read_json_lines("t.jsonl");
  ASSERT_EQ(steps.size(), 3U);
  int correct = 0;
  for (const auto& step : steps) {
    EXPECT_EQ(keys_of(step),
              (std::vector<std::string>{"step", "window_step", "batch", "loss", "confident",
                                        "gradient_norm", "layers", "selected", "gap", "correct",
                                        "images", "milliseconds"}));
    EXPECT_EQ(step.at("images"), 8);
    ASSERT_EQ(step.at("layers").size(), 17U);
    for (const auto& layer : step.at("layers")) {
      EXPECT_EQ(keys_of(layer), (std::vector<std::string>{"name", "cosine", "update_norm",
                                                          "shift_norm", "weight"}));
    }
    EXPECT_GT(step.at("milliseconds"), 0);
    correct += step.at("correct").get<int>();
  }
  // A window opens: no displacement yet, every cosine is 1, all layers move by the opening scale.
  for (const auto& layer : steps[0].at("layers")) {
    EXPECT_EQ(layer.at("cosine"), 1);
    EXPECT_EQ(layer.at("shift_norm"), 0);
    EXPECT_EQ(layer.at("weight"), 0.01);
  }
  EXPECT_EQ(steps[0].at("selected").size(), 17U);
  EXPECT_LE(steps[1].at("selected").size(), 1U);
  const Ending scored = run(labelled_ + "--predictions p.csv");
  int right = 0;
  for (const std::string& line : words(read("p.csv"))) {
    const std::size_t a = line.find(','), b = line.find(',', a + 1), c = line.find(',', b + 1);
    right += line.substr(a + 1, b - a - 1) == line.substr(c + 1);
  }
  EXPECT_EQ(correct, right);
  char share[32];
  std::snprintf(share, sizeof share, "%.2f %%", 100.0 * right / 24);
  EXPECT_CONTAINS(scored.out, share);
}

TEST_F(Output, WithoutLabelsNothingIsScored) {
  const Ending ending = run(unlabelled_ + "--trace t.jsonl --predictions p.csv --deterministic");
  ASSERT_EQ(ending.code, 0) << ending.err;
  for (const auto& step : read_json_lines("t.jsonl")) {
    EXPECT_FALSE(step.contains("correct"));
    EXPECT_FALSE(step.contains("milliseconds"));
  }
  EXPECT_EQ(ending.out.find("accuracy"), std::string::npos);
  const auto lines = words(read("p.csv"));
  ASSERT_EQ(lines.size(), 25U);
  EXPECT_EQ(lines[0], "index,prediction,confidence");
  EXPECT_TRUE(lines[1].starts_with("0,"));
  EXPECT_TRUE(lines[24].starts_with("23,"));
}

TEST_F(Output, PredictionsAreInStreamOrderWithTheirLabels) {
  ASSERT_EQ(run(labelled_ + "--predictions p.csv").code, 0);
  const auto lines = words(read("p.csv"));
  ASSERT_EQ(lines.size(), 25U);
  EXPECT_EQ(lines[0], "index,prediction,confidence,label");
  for (std::size_t i = 0; i < 24; ++i) {
    EXPECT_TRUE(lines[i + 1].starts_with(std::to_string(i) + ",")) << lines[i + 1];
    EXPECT_TRUE(lines[i + 1].ends_with(fmt::format(",{}", i % 10))) << lines[i + 1];
  }
}

TEST_F(Output, ResultsAndTalkGoSeparateWays) {
  const Ending ending =
      run("adapt --model wide_resnet:depth=10,width=1 --batch-size 8 --data "
          "arrays:images=x.npy,labels=y.npy");
  ASSERT_EQ(ending.code, 0);
  EXPECT_CONTAINS(ending.err, "warning: no --weights");
  EXPECT_CONTAINS(ending.err, "method  pseudo_label | gala | adam | norm source\n");
  EXPECT_EQ(ending.out.find("warning"), std::string::npos);
  EXPECT_CONTAINS(ending.out, "accuracy");
  EXPECT_EQ(ending.err.find('\033'), std::string::npos);
  const Ending quiet =
      run("adapt --model wide_resnet:depth=10,width=1 --batch-size 8 --data "
          "arrays:images=x.npy,labels=y.npy --quiet");
  EXPECT_EQ(quiet.err, "");
  EXPECT_EQ(quiet.out, ending.out);
}

TEST_F(Output, ProfileTellsWhereTheTimeWent) {
  const Ending ending = run(labelled_ + "--profile");
  for (const char* part :
       {"load", "forward", "backward", "measure", "select", "apply", "predict"}) {
    EXPECT_CONTAINS(ending.out, std::string("\n") + part + " ");
  }
}

TEST_F(Output, OnATerminalThereAreABarAndColours) {
  const std::string flags =
      "adapt --model wide_resnet:depth=10,width=1 --batch-size 1 --data arrays:images=x.npy";
  const Ending ending = run_on_terminal(flags);
  EXPECT_EQ(ending.code, 0);
  EXPECT_CONTAINS(ending.err, "\033[33mwarning:\033[0m");
  EXPECT_CONTAINS(ending.err, "━ 24/24");
  EXPECT_TRUE(ending.err.ends_with("\r\033[K")) << "the bar is cleared before the results";
  const Ending plain = run_on_terminal(flags, "NO_COLOR=1");
  EXPECT_CONTAINS(plain.err, "warning: no --weights");
  EXPECT_EQ(plain.err.find("\033[33m"), std::string::npos);
  EXPECT_EQ(run_on_terminal(flags + " --quiet").err, "");
}

TEST_F(Output, AFullDiskIsAnErrorAndNotACrash) {
  for (const char* flag : {"--trace", "--predictions", "--save-weights", "--save-state"}) {
    const Ending ending = run(labelled_ + "--quiet " + flag + " /dev/full");
    EXPECT_EQ(ending.code, 1) << flag;
    EXPECT_EQ(ending.err_lines().back(), "error: /dev/full: writing failed (is the disk full?)");
  }
}

TEST_F(Output, AFullDiskAtTheEndDoesNotHideTheResult) {
  const Ending straight = run(labelled_ + "--quiet");
  for (const char* flag : {"--save-weights", "--save-state"}) {
    const Ending ending = run(labelled_ + "--quiet " + flag + " /dev/full");
    EXPECT_EQ(ending.code, 1) << flag;
    EXPECT_EQ(ending.out, straight.out) << flag;
  }
  // Each of the others is written all the same, and each failure is named.
  std::filesystem::create_symlink("/dev/full", path("full"));
  const Ending both =
      run("adapt --weights source.safetensors --batch-size 24 --loss entropy --quiet --data "
          "arrays:images=x.npy,labels=y.npy --save-weights /dev/full --save-state s.state "
          "--trace full --predictions p.csv");
  EXPECT_EQ(both.code, 1);
  EXPECT_EQ(both.err,
            "error: full: writing failed (is the disk full?); /dev/full: writing failed (is the "
            "disk full?)\n");
  EXPECT_CONTAINS(both.out, "accuracy");
  EXPECT_TRUE(std::filesystem::exists(path("s.state")));
  EXPECT_EQ(words(read("p.csv")).size(), 25U);
}

TEST_F(Output, WhatAFullDiskDidNotTakeIsInTheState) {
  const std::string flags = labelled_ + "--deterministic --predictions ";
  const Ending straight = run(flags + "a.csv --trace a.jsonl");
  ASSERT_EQ(straight.code, 0) << straight.err;
  const Ending full = run(flags + "b.csv --trace /dev/full --save-state b.state");
  EXPECT_EQ(full.code, 1);
  EXPECT_EQ(full.out, "");
  EXPECT_CONTAINS(full.err, "stopped after batch 1 of 3, accuracy so far ");
  EXPECT_CONTAINS(full.err, "--resume b.state");
  EXPECT_EQ(full.err_lines().back(), "error: /dev/full: writing failed (is the disk full?)");
  // With room for the trace the run goes on, and not a line is missing.
  const Ending resumed = run(flags + "b.csv --trace b.jsonl --resume b.state");
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(read("a.jsonl"), read("b.jsonl"));
  EXPECT_EQ(read("a.csv"), read("b.csv"));
  EXPECT_EQ(straight.out, resumed.out);
}

TEST_F(Output, HalfALineThatAFullDiskTookIsEndedInItsOwnFileOnly) {
  const std::string flags = labelled_ + "--deterministic --predictions ";
  ASSERT_EQ(run(flags + "a.csv").code, 0);
  ASSERT_EQ(run(flags + "b.csv --trace /dev/full --save-state b.state").code, 1);
  // As if the disk had taken all but the last bytes of the predictions.
  const std::string taken = read("b.csv");
  State state = read_state(path("b.state"));
  auto& position = state.values["files"]["predictions"];
  ASSERT_EQ(position.at("bytes"), taken.size());
  position["bytes"] = taken.size() - 5;
  position["pending"] = taken.substr(taken.size() - 5);
  write_state(path("b.state"), state);
  write("b.csv", taken.substr(0, taken.size() - 5));

  const Ending other = run(flags + "c.csv --resume b.state");
  ASSERT_EQ(other.code, 0) << other.err;
  const std::string whole = read("a.csv");
  EXPECT_EQ(read("c.csv"), whole.substr(0, whole.find('\n') + 1) + whole.substr(taken.size()));
  const Ending same = run(flags + "b.csv --resume b.state");
  ASSERT_EQ(same.code, 0) << same.err;
  EXPECT_EQ(read("b.csv"), whole);
}

TEST_F(Output, APictureThatCannotBeReadDoesNotCostTheRunBeforeIt) {
  for (int i = 0; i < 40; ++i) {
    write_png(fmt::format("photos/{}/{}.png", i / 4, i), static_cast<std::uint64_t>(i));
  }
  const std::string flags = base_ + "--data folder:path=photos --deterministic --predictions ";
  ASSERT_EQ(run(flags + "a.csv").code, 0);
  const std::string whole = read("photos/9/39.png");
  write("photos/9/39.png", "no picture");
  const Ending broken = run(flags + "b.csv --save-state b.state");
  EXPECT_EQ(broken.code, 2);
  EXPECT_CONTAINS(broken.err, "39.png");
  EXPECT_CONTAINS(broken.err, "stopped after batch 4 of 5");
  EXPECT_EQ(words(read("b.csv")).size(), 33U);
  write("photos/9/39.png", whole);
  ASSERT_EQ(run(flags + "b.csv --resume b.state").code, 0);
  EXPECT_EQ(read("a.csv"), read("b.csv"));
}

TEST_F(Output, ADeviceIsWrittenToAndNotReplaced) {
  const Ending ending = run(labelled_ + "--trace /dev/null --save-weights /dev/null");
  EXPECT_EQ(ending.code, 0) << ending.err;
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

/// Forced collapse: beside such a step nothing of the parameters is left.
class Collapse : public Output {
 protected:
  Ending collapse(const std::string& guard) {
    return run(labelled_ +
               "--select all --norm batch --optimizer adam:rate=1e8 --trace t.jsonl --guard " +
               guard + "every=1,horizon=8 --events e.jsonl");
  }
};

TEST_F(Collapse, IsWarnedOfOnce) {
  const Ending ending = collapse("warn:");
  ASSERT_EQ(ending.code, 0) << ending.err;
  const std::size_t first = ending.err.find("warning: an update was so large");
  ASSERT_NE(first, std::string::npos) << ending.err;
  EXPECT_EQ(ending.err.find("an update was so large", first + 30), std::string::npos);
  EXPECT_EQ(read_json_lines("t.jsonl").size(), 3U);
  const auto events = read_json_lines("e.jsonl");
  ASSERT_EQ(events.size(), 3U);
  for (auto event : events) {
    if (event.at("batch") <= 2) {  // the first two judgements ask the source
      EXPECT_EQ(event.at("agreement").is_number(), true);
    }
    event.erase("agreement");
    EXPECT_EQ(keys_of(event),
              (std::vector<std::string>{"event", "batch", "reasons", "action", "effective_classes",
                                        "entropy", "displacement", "drift", "update_norm",
                                        "refused", "histogram"}));
    EXPECT_EQ(event.at("event"), "collapse");
    EXPECT_EQ(event.at("action"), "warn");
    EXPECT_GT(event.at("displacement"), 0.5);
  }
  EXPECT_CONTAINS(ending.out, "guard      collapse at 3 judgements, 0 rollbacks\n");
}

TEST_F(Collapse, StopsAdaptationOnRequest) {
  const Ending ending = collapse("stop:");
  ASSERT_EQ(ending.code, 0) << ending.err;
  EXPECT_EQ(read_json_lines("t.jsonl").size(), 1U);
  EXPECT_EQ(read_json_lines("e.jsonl")[0].at("action"), "stop");
  EXPECT_CONTAINS(ending.out, "adaptation stopped");
  const std::size_t first = ending.err.find("the guard acts: stop");
  ASSERT_NE(first, std::string::npos) << ending.err;
  EXPECT_EQ(ending.err.find("the guard acts", first + 1), std::string::npos) << "said once";
  EXPECT_CONTAINS(ending.out, "answered   24 images");
}

TEST_F(Collapse, RollsBackOnRequest) {
  for (const std::string to : {"source", "healthy"}) {
    const Ending ending = collapse(fmt::format("rollback:to={},", to));
    ASSERT_EQ(ending.code, 0) << ending.err;
    for (const auto& event : read_json_lines("e.jsonl")) {
      EXPECT_EQ(event.at("action"), fmt::format("rollback to {}", to));
    }
    // Back at the source after every batch, so every step opens a window.
    for (const auto& step : read_json_lines("t.jsonl")) EXPECT_EQ(step.at("window_step"), 1);
    EXPECT_CONTAINS(ending.out, "3 rollbacks");
  }
}

}  // namespace
}  // namespace gala::test
