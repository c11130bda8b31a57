#include "gala/tensor/recording.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "gala/base/error.h"

namespace gala {
namespace {

void wait_until(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::yield();
}

TEST(RecordingTest, KeepsRecordingsApartFromEverythingElse) {
  std::atomic<int> recording = 0, unrecorded = 0, clashes = 0, together = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        if (t < 2) {
          const Recording alone;
          if (++recording > 1 || unrecorded > 0) ++clashes;
          std::this_thread::yield();
          --recording;
        } else {
          const Unrecorded pass;
          if (++unrecorded > 1) ++together;
          if (recording > 0) ++clashes;
          std::this_thread::yield();
          --unrecorded;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(clashes, 0);
  EXPECT_GT(together, 0);
}

TEST(RecordingTest, ComesToItsTurnAmongPassesThatNeverEndTogether) {
  std::atomic<bool> recorded = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      while (!recorded) {
        const Unrecorded pass;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  }
  {
    const Recording alone;
    recorded = true;
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(RecordingTest, APassInsideAPassDoesNotWaitForWhoWaitsToRecord) {
  std::atomic<bool> begun = false;
  std::thread recorder;
  {
    const Unrecorded outer;
    recorder = std::thread([&] {
      begun = true;
      const Recording alone;
    });
    wait_until(begun);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const Unrecorded inner;
  }
  recorder.join();
}

TEST(RecordingTest, ContainsPassesButIsNotContainedInOne) {
  {
    const Recording alone;
    const Unrecorded inside;
    EXPECT_THROW(Recording(), Error);
  }
  {
    const Unrecorded pass;
    EXPECT_THROW(Recording(), Error);
  }
  const Recording again;
}

}  // namespace
}  // namespace gala
