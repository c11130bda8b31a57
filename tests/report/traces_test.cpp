#include "gala/report/traces.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

#include "gala/base/error.h"

namespace gala::test {
namespace {

class TraceFile : public ::testing::Test {
 protected:
  TraceFile()
      : path_(std::filesystem::temp_directory_path() /
              ("gala_report_" + std::to_string(getpid()) + ".jsonl")) {}
  ~TraceFile() override { std::filesystem::remove(path_); }
  AdaptTrace read(const std::string& text) {
    std::ofstream(path_) << text;
    return read_adapt_trace(path_);
  }
  std::filesystem::path path_;
};

std::string line(int step, int window_step, const std::string& layers, const std::string& selected,
                 double gap, int correct) {
  return R"({"step":)" + std::to_string(step) + R"(,"window_step":)" + std::to_string(window_step) +
         R"(,"batch":)" + std::to_string(step) +
         R"(,"loss":0.5,"confident":3,"gradient_norm":1.5)" + R"(,"layers":[)" + layers +
         R"(],"selected":[)" + selected + R"(],"gap":)" + std::to_string(gap) + R"(,"correct":)" +
         std::to_string(correct) + R"(,"images":10})" + "\n";
}

std::string layer(const std::string& name, double cosine, double update, double shift,
                  double weight) {
  return R"({"name":")" + name + R"(","cosine":)" + std::to_string(cosine) + R"(,"update_norm":)" +
         std::to_string(update) + R"(,"shift_norm":)" + std::to_string(shift) + R"(,"weight":)" +
         std::to_string(weight) + "}";
}

TEST_F(TraceFile, AGapThatIsNoNumberIsPassedOver) {
  std::string second =
      line(2, 2, layer("a", 0.9, 3, 1, 1) + "," + layer("b", 0.4, 4, 2, 0), R"("a")", 0.5, 6);
  const std::string first =
      line(1, 1, layer("a", 1, 2, 0, 0.5) + "," + layer("b", 1, 4, 0, 0.5), R"("a","b")", 0, 5);
  const AdaptTrace whole = read(first + second);
  EXPECT_EQ(whole.run.gap.steps, 1);
  second.replace(second.find(R"("gap")"), 5, R"("gaq")");
  const AdaptTrace without = read(first + second);
  EXPECT_EQ(without.run.gap.steps, 0);
  EXPECT_EQ(without.run.steps, 2);
}

TEST_F(TraceFile, BecomesARun) {
  const AdaptTrace trace = read(
      line(1, 1, layer("a", 1, 2, 0, 0.5) + "," + layer("b", 1, 4, 0, 0.5), R"("a","b")", 0, 5) +
      line(2, 2, layer("a", 0.9, 3, 1, 1) + "," + layer("b", 0.4, 4, 2, 0), R"("a")", 0.5, 6) +
      line(3, 3, layer("a", 0.7, 3, 2.5, 0) + "," + layer("b", 0.2, 4, 2, 0), "", 0.5, 7) +
      line(4, 1, layer("a", 1, 2, 0, 0.5) + "," + layer("b", 1, 4, 0, 0.5), R"("a","b")", 0, 8));
  const Record& run = trace.run;
  EXPECT_EQ(run.steps, 4);
  EXPECT_EQ(run.skipped, 1);
  const std::vector<std::pair<std::int64_t, std::int64_t>> choices = {
      {Record::kSeveral, 1}, {0, 1}, {Record::kNone, 1}, {Record::kSeveral, 1}};
  EXPECT_EQ(run.choices, choices);
  EXPECT_EQ(run.layers[0].chosen, 1);
  EXPECT_EQ(run.layers[1].chosen, 0);
  EXPECT_NEAR(run.layers[0].weight, 2, 1e-12);
  // First window, up to its last step: path 0.5 * 2 + 3 = 4, net 2.5. The second has one step.
  EXPECT_NEAR(run.layers[0].path, 4, 1e-9);
  EXPECT_NEAR(run.layers[0].net, 2.5, 1e-9);
  EXPECT_NEAR(run.layers[1].path, 2, 1e-9);
  EXPECT_NEAR(run.layers[1].net, 2, 1e-9);
  EXPECT_EQ(run.gap.steps, 2);  // steps that open a window do not count
  EXPECT_NEAR(run.accuracy(), 26.0 / 40, 1e-12);
  // Without the steps that open a window.
  EXPECT_EQ(trace.cosines.steps, (std::vector<std::int64_t>{2, 3}));
  EXPECT_NEAR(trace.cosines.best[0], 0.1, 1e-9);
  EXPECT_NEAR(trace.cosines.worst[1], 0.8, 1e-9);
}

TEST_F(TraceFile, SaysHowOftenAWindowTookALayerTwice) {
  const auto both = [&](const char* chosen) {
    const bool first = std::string_view(chosen) == R"("a")";
    return layer("a", 0.9, 3, 1, first) + "," + layer("b", 0.9, 3, 1, !first);
  };
  const auto opening = layer("a", 1, 2, 0, 0.5) + "," + layer("b", 1, 4, 0, 0.5);
  const char *a = R"("a")", *b = R"("b")", *all = R"("a","b")";
  const std::string window = line(1, 1, opening, all, 0, 5) + line(2, 2, both(a), a, 0.5, 6) +
                             line(3, 3, both(a), a, 0.5, 6);
  EXPECT_FALSE(read(window).run.rotation) << "one window may be all there is";
  const AdaptTrace trace = read(window + line(4, 1, opening, all, 0, 5) +
                                line(5, 2, both(a), a, 0.5, 6) + line(6, 3, both(b), b, 0.5, 6));
  EXPECT_EQ(trace.run.rotation, (Rotation{4, 1, 2 * 0.5}));
}

TEST_F(TraceFile, ALineThatWasCutOffIsPassedOver) {
  const std::string whole = line(1, 1, layer("a", 1, 2, 0, 1), R"("a")", 0, 5);
  EXPECT_EQ(read(whole + whole.substr(0, 40)).run.steps, 1);
}

TEST_F(TraceFile, WhatIsNoTraceIsRefusedWithTheLine) {
  const auto message = [&](const std::string& text) {
    try {
      read(text);
    } catch (const FormatError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(message("").find("holds no step"), std::string::npos);
  EXPECT_NE(message("{}\n{}\n").find("line 1"), std::string::npos);
  EXPECT_NE(message("not json\nat all\n").find("line 1"), std::string::npos);
  const std::string one = line(1, 1, layer("a", 1, 2, 0, 1), R"("a")", 0, 5);
  const std::string two =
      line(2, 2, layer("a", 1, 2, 0, 1) + "," + layer("b", 1, 2, 0, 1), "", 0, 5);
  EXPECT_NE(message(one + two + one).find("line 2"), std::string::npos);
  EXPECT_THROW(read_adapt_trace(path_.string() + ".gone"), FormatError);
}

}  // namespace
}  // namespace gala::test
