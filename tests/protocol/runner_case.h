#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gala/protocol/runner.h"
#include "tests/data/support.h"

namespace gala::test {

inline const std::string kAssets = std::string(GALA_TEST_SOURCE_DIR) + "/assets";

/// Runs of a plan, made in a folder of their own.
class RunnerTest : public ::testing::Test {
 protected:
  /// `rows` follows the heading and [run] with these keys.
  std::vector<Record> made(const std::string& run, const std::string& rows = "") {
    const std::vector<ReadyRun> runs = ready(run, rows);
    Store store(folder_ / "store", Store::Access::kWrite);
    Machine machine;
    run_all(runs_to_do(runs, store, {}), store, machine, [](const RunnerStatus&) {});
    store.refresh();
    return store.records();
  }
  std::vector<ReadyRun> ready(const std::string& run, const std::string& rows = "") {
    Problems problems;
    std::vector<ReadyRun> runs = resolved(run, rows, problems);
    for (const std::string& problem : problems.list()) ADD_FAILURE() << problem;
    return runs;
  }
  std::vector<std::string> problems_of(const std::string& run, const std::string& rows = "") {
    Problems problems;
    resolved(run, rows, problems);
    return problems.list();
  }
  std::string problem_of(const std::string& run, const std::string& rows = "") {
    const std::vector<std::string> problems = problems_of(run, rows);
    return problems.empty() ? "none" : problems.front();
  }
  /// A stream of two corruptions of the demo's images under the demo's network.
  static std::string continual(const std::string& corruptions = "contrast,fog",
                               const std::string& more = "") {
    return fmt::format(
        "protocol = 'continual:generate=yes,images=60,path={}/cifar10_test_2000.png,"
        "corruption=\"{}\"'\nweights = \"{}/wrn16_2_cifar10.safetensors\"\nbatch_size = 20\n{}",
        kAssets, corruptions, kAssets, more);
  }

  TemporaryFolder folder_;

 private:
  std::vector<ReadyRun> resolved(const std::string& run, const std::string& rows,
                                 Problems& problems) {
    const std::string text =
        "[plan]\nname = \"test\"\ntitle = \"Test\"\n[run]\n" + run + "\n" + rows;
    const ExperimentPlan plan = parse_plan(text, folder_ / "plan.toml", problems);
    return resolve(plan, folder_.path(), problems);
  }
};

}  // namespace gala::test
