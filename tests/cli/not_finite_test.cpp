// Answers that are not finite, from outside: what is printed, written, saved.
#include <fmt/format.h>
#include <algorithm>
#include <cstring>
#include <limits>
#include <sstream>

#include "tests/cli/run_gala.h"

namespace gala::test {
namespace {

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class NotFinite : public GalaProgram {
 protected:
  void SetUp() override { write_source_weights(); }

  /// The lines of the CSV without its heading, cut at commas.
  std::vector<std::vector<std::string>> answers(const std::string& name) const {
    std::vector<std::vector<std::string>> lines;
    std::istringstream text(read(name));
    std::string line;
    for (std::getline(text, line); std::getline(text, line);) {
      std::replace(line.begin(), line.end(), ',', ' ');
      lines.push_back(words(line));
    }
    return lines;
  }
};

TEST_F(NotFinite, ABrokenPictureIsWrongWhateverItsLabel) {
  write_planes("f.npy", 8, /*broken=*/5);
  write_labels("zeros.npy", 8, /*classes=*/1);
  for (const char* norm : {"source", "batch", "running"}) {
    const Ending ending =
        run(fmt::format("adapt --weights source.safetensors --data "
                        "arrays:images=f.npy,labels=zeros.npy --batch-size 8 --loss entropy "
                        "--select all --norm {} --predictions p.csv",
                        norm));
    ASSERT_EQ(ending.code, 0) << ending.err;
    const auto lines = answers("p.csv");
    ASSERT_EQ(lines.size(), 8U);
    std::size_t right = 0;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      EXPECT_EQ(lines[i][1] == "-1", i == 5) << norm << ' ' << i;
      right += lines[i][1] == "0";
    }
    EXPECT_EQ(lines[5], (std::vector<std::string>{"5", "-1", "0", "0"}));
    EXPECT_EQ(read("p.csv").find("nan"), std::string::npos);
    EXPECT_LT(right, 8U);
    EXPECT_CONTAINS(ending.out, fmt::format("{:.2f} %", 100.0 * static_cast<double>(right) / 8));
    EXPECT_CONTAINS(ending.out,
                    "not finite 0 answers given by the source model instead, 1 by nobody (which "
                    "counts as wrong)\n");
    EXPECT_CONTAINS(ending.err, "warning: batch 1: 1 of 8 images have no finite answer");
    EXPECT_CONTAINS(ending.err, "the first is image 5");
  }
}

TEST_F(NotFinite, BrokenPicturesAreWarnedOfOnce) {
  write_planes("f.npy", 6);
  std::string bytes = read("f.npy");
  const std::size_t picture = 4 * 3 * 32 * 32, header = bytes.size() - 6 * picture;
  const float infinite = std::numeric_limits<float>::infinity();
  for (const std::size_t number : {1, 3, 4}) {
    std::memcpy(bytes.data() + header + number * picture + 400, &infinite, sizeof(infinite));
  }
  write("f.npy", bytes);
  const std::string flags =
      "adapt --weights source.safetensors --data arrays:images=f.npy --norm batch --loss entropy "
      "--select all --guard stop --predictions p.csv --batch-size ";
  const Ending single = run(flags + "1"), pairs = run(flags + "2");
  for (const Ending& ending : {single, pairs}) {
    ASSERT_EQ(ending.code, 0) << ending.err;
    EXPECT_EQ(count_of(ending.err, "have no finite answer"), 1U) << ending.err;
    EXPECT_CONTAINS(ending.out,
                    "not finite 0 answers given by the source model instead, 3 by nobody");
    EXPECT_EQ(ending.out.find("stopped"), std::string::npos) << "the pictures are to blame";
    for (const auto& line : answers("p.csv")) {
      EXPECT_EQ(line[1] == "-1", line[0] == "1" || line[0] == "3" || line[0] == "4");
    }
  }
  EXPECT_CONTAINS(single.out, "3 refused");
}

/// 40 batches at a rate that leaves nothing of the network after one step.
class Ruin : public NotFinite {
 protected:
  void SetUp() override {
    NotFinite::SetUp();
    write_pictures("x.npy", 80);
    write_labels("y.npy", 80);
  }

  Ending ruin(const std::string& guard, const std::string& more = "") {
    return run(
        "adapt --weights source.safetensors --data arrays:images=x.npy,labels=y.npy --batch-size 2 "
        "--loss entropy --select all --optimizer sgd:rate=1e38 --norm batch --predictions p.csv "
        "--guard " +
        guard + ' ' + more);
  }
  void expect_finite_answers(const std::string& guard) const {
    const auto lines = answers("p.csv");
    EXPECT_EQ(lines.size(), 80U) << guard;
    for (const auto& line : lines) EXPECT_NE(line[1], "-1") << guard;
    EXPECT_EQ(read("p.csv").find("nan"), std::string::npos) << guard;
  }
};

TEST_F(Ruin, IsAnsweredBySourceModelUnderEveryGuard) {
  for (const std::string guard : {"off", "warn", "stop"}) {
    const Ending ending = ruin(guard);
    ASSERT_EQ(ending.code, 0) << ending.err;
    expect_finite_answers(guard);
    EXPECT_CONTAINS(ending.out, "not finite 78 answers given by the source model instead, 0 by");
    const std::size_t said =
        count_of(ending.err, "nothing of the source model is left (batch 1: lost");
    EXPECT_EQ(said, guard == "off" ? 0U : 1U) << ending.err;
    EXPECT_EQ(count_of(ending.err, "warning:"), said) << ending.err;
    if (guard == "stop") {
      EXPECT_CONTAINS(ending.out, "adaptation stopped");
    }
    EXPECT_CONTAINS(ending.out, guard == "stop" ? "steps      1 (0 skipped, 0 refused"
                                                : "steps      40 (0 skipped, 39 refused");
  }
}

TEST_F(Ruin, IsRolledBackAtOnce) {
  const Ending ending = ruin("rollback", "--save-weights w.safetensors");
  ASSERT_EQ(ending.code, 0) << ending.err;
  expect_finite_answers("rollback");
  EXPECT_CONTAINS(ending.out, "40 rollbacks");
  EXPECT_EQ(ending.out.find("not finite"), ending.out.find("not finite)")) << ending.out;
  EXPECT_EQ(count_of(ending.err, "the guard acts: rollback to source"), 5U) << ending.err;
  EXPECT_CONTAINS(ending.err, "(further ones are only counted)");
  EXPECT_EQ(run("inspect --weights w.safetensors").code, 0);
}

TEST_F(Ruin, IsNotSavedAsWeights) {
  for (const std::string guard : {"off", "warn", "stop"}) {
    const Ending ending = ruin(guard, "--save-weights w.safetensors --save-state s.state");
    EXPECT_EQ(ending.code, 1) << guard;
    EXPECT_CONTAINS(ending.err,
                    "error: --save-weights w.safetensors: not written, since adaptation");
    EXPECT_CONTAINS(ending.err, "--guard rollback");
    EXPECT_FALSE(std::filesystem::exists(path("w.safetensors")));
    EXPECT_TRUE(std::filesystem::exists(path("s.state")));
    EXPECT_CONTAINS(ending.out, "answered   80 images");
    EXPECT_EQ(answers("p.csv").size(), 80U);
    // Nor by a run that has nothing left to do.
    const Ending again =
        ruin(guard, "--save-weights w.safetensors --resume s.state --save-state s.state");
    EXPECT_EQ(again.code, 1) << again.err;
    EXPECT_FALSE(std::filesystem::exists(path("w.safetensors")));
    EXPECT_EQ(again.out, ending.out);
  }
}

TEST_F(Ruin, LeavesAfterTheVeryLastStepIsNotSavedEither) {
  write_pictures("x.npy", 2);
  write_labels("y.npy", 2);
  const Ending ending = ruin("off", "--save-weights w.safetensors");
  EXPECT_EQ(ending.code, 1) << ending.err;
  EXPECT_FALSE(std::filesystem::exists(path("w.safetensors")));
}

}  // namespace
}  // namespace gala::test
