#include "gala/protocol/claims.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "gala/protocol/runner.h"
#include "tests/data/support.h"

namespace gala {
namespace {

using test::TemporaryFolder;

constexpr const char* kKey = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
constexpr const char* kOther = "f123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

TEST(Claims, ARunIsClaimedByOneAtATime) {
  const TemporaryFolder folder;
  const Claims mine(folder.path());
  auto theirs = std::make_unique<Claims>(folder.path());
  EXPECT_TRUE(mine.take(kKey));
  EXPECT_FALSE(theirs->take(kKey));
  EXPECT_TRUE(theirs->take(kOther));
  EXPECT_FALSE(mine.take(kOther));
  mine.give_back(kKey);
  EXPECT_TRUE(theirs->take(kKey));
  theirs.reset();
  EXPECT_TRUE(mine.take(kKey));
  EXPECT_TRUE(mine.take(kOther));
}

TEST(Claims, EndWithTheirProgram) {
  const TemporaryFolder folder;
  int told[2];
  ASSERT_EQ(pipe(told), 0);
  const pid_t child = fork();
  if (child == 0) {
    const Claims claims(folder.path());
    const char taken = claims.take(kKey) ? 'y' : 'n';
    if (write(told[1], &taken, 1) != 1) _exit(1);
    pause();
    _exit(0);
  }
  char taken = 0;
  ASSERT_EQ(read(told[0], &taken, 1), 1);
  EXPECT_EQ(taken, 'y');
  const Claims claims(folder.path());
  EXPECT_FALSE(claims.take(kKey));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(claims.take(kKey));
  close(told[0]);
  close(told[1]);
}

TEST(Claims, WithoutAFileEverythingCanBeClaimed) {
  const Claims claims("/nowhere/at/all");
  EXPECT_TRUE(claims.take(kKey));
  claims.give_back(kKey);
}

TEST(Claims, RunsThatOthersAreAtWorkOnComeLast) {
  const TemporaryFolder folder;
  Problems problems;
  const std::string assets = GALA_TEST_SOURCE_DIR "/assets";
  const ExperimentPlan plan = parse_plan(
      fmt::format(
          "[plan]\nname = \"test\"\ntitle = \"Test\"\n[run]\nprotocol = "
          "'continual:generate=yes,images=20,path={}/cifar10_test_2000.png,corruption=fog'\n"
          "weights = \"{}/wrn16_2_cifar10.safetensors\"\nbatch_size = 20\n"
          "[[row]]\nname = \"A\"\nselect = \"none\"\n[[row]]\nname = \"B\"\n",
          assets, assets),
      folder / "plan.toml", problems);
  const std::vector<ReadyRun> runs = resolve(plan, folder.path(), problems);
  ASSERT_TRUE(problems.empty());
  ASSERT_EQ(runs.size(), 2U);

  std::filesystem::create_directories(folder / "store");
  const Claims others(folder / "store");
  ASSERT_TRUE(others.take(runs[0].key));
  Store store(folder / "store", Store::Access::kWrite);
  RunnerOutcome outcome;
  std::thread runner([&] {
    outcome = run_all(runs_to_do(runs, store, {}), store, {}, [](const RunnerStatus&) {});
  });
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!store.contains(runs[1].key) && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_TRUE(store.contains(runs[1].key));
  EXPECT_FALSE(store.contains(runs[0].key));
  others.give_back(runs[0].key);
  runner.join();
  EXPECT_EQ(outcome.added, 2);
  EXPECT_TRUE(store.contains(runs[0].key));
}

}  // namespace
}  // namespace gala
