#include "gala/device/capture_gate.h"

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
  std::atomic<int> capture = 0, uncaptured = 0, clashes = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        if (t < 2) {
          const Capturing alone;
          if (++capture > 1 || uncaptured > 0) ++clashes;
          std::this_thread::yield();
          --capture;
        } else {
          const Uncaptured pass;
          ++uncaptured;
          if (capture > 0) ++clashes;
          std::this_thread::yield();
          --uncaptured;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(clashes, 0);
}

TEST(RecordingTest, LetsPassesRunBesideEachOther) {
  std::atomic<bool> first = false, second = false;
  std::thread other([&] {
    const Uncaptured pass;
    first = true;
    wait_until(second);  // for ever, if only one could be inside
  });
  wait_until(first);
  {
    const Uncaptured pass;
    second = true;
  }
  other.join();
}

TEST(RecordingTest, ComesToItsTurnAmongPassesThatNeverEndTogether) {
  std::atomic<bool> captured = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      while (!captured) {
        const Uncaptured pass;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  }
  {
    const Capturing alone;
    captured = true;
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(RecordingTest, APassInsideAPassDoesNotWaitForWhoWaitsToRecord) {
  std::atomic<bool> begun = false;
  std::thread recorder;
  {
    const Uncaptured outer;
    recorder = std::thread([&] {
      begun = true;
      const Capturing alone;
    });
    wait_until(begun);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const Uncaptured inner;
  }
  recorder.join();
}

TEST(RecordingTest, ContainsPassesButIsNotContainedInOne) {
  {
    const Capturing alone;
    const Uncaptured inside;
    EXPECT_THROW(Capturing(), Error);
  }
  {
    const Uncaptured pass;
    EXPECT_THROW(Capturing(), Error);
  }
  const Capturing again;
}

}  // namespace
}  // namespace gala
