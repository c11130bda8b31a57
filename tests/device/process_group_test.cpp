#include "gala/device/process_group.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "gala/base/random.h"
#include "gala/device/rendezvous.h"
#include "tests/data/support.h"
#include "tests/device/free_port.h"
#include "tests/device/thread_processes.h"

namespace gala {
namespace {

using test::run_processes;
using namespace std::chrono_literals;

std::vector<float> values_of(int rank, std::int64_t count) {
  Random random(7, "values", {static_cast<std::uint64_t>(rank)});
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    // Of very different sizes, so that another order of adding floats gives other bits.
    values.push_back(static_cast<float>(random.normal() * std::pow(10.0, i % 9)));
  }
  return values;
}

TEST(ProcessGroup, SumsInTheOrderOfRanksToTheSameBitsEverywhere) {
  for (const int size : {2, 3, 5}) {
    for (const std::int64_t count : {1, 7, 8192, 8193, 100'003}) {
      std::vector<float> expected;
      std::vector<std::vector<float>> given;
      for (int rank = 0; rank < size; ++rank) given.push_back(values_of(rank, count));
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
        double sum = 0;
        for (const auto& values : given) sum += static_cast<double>(values[i]);
        expected.push_back(static_cast<float>(sum));
      }
      std::vector<std::vector<float>> sums(static_cast<std::size_t>(size));
      const auto errors = run_processes(size, [&](ProcessGroup& group) {
        const std::vector<float> mine = values_of(group.rank(), count);
        at::Tensor tensor = at::tensor(mine);
        group.sum(tensor);
        const float* data = tensor.const_data_ptr<float>();
        sums[static_cast<std::size_t>(group.rank())].assign(data, data + count);
      });
      for (const std::string& error : errors) EXPECT_EQ(error, "");
      for (const auto& sum : sums) EXPECT_EQ(sum, expected) << size << ", " << count;
    }
  }
}

TEST(ProcessGroup, SumsWholeNumbersAndDoublesToo) {
  const auto errors = run_processes(3, [](ProcessGroup& group) {
    at::Tensor whole = at::full({20'000}, std::int64_t{1} << 60, at::kLong);
    whole[0] = group.rank();
    group.sum(whole);
    EXPECT_EQ(whole[0].item<std::int64_t>(), 3);
    EXPECT_EQ(whole[19'999].item<std::int64_t>(), 3 * (std::int64_t{1} << 60));
    at::Tensor wide = at::tensor({1e-300, 0.5}, at::kDouble);
    group.sum(wide);
    EXPECT_DOUBLE_EQ(wide[0].item<double>(), 3e-300);
    at::Tensor none = at::empty({0}, at::kFloat);
    group.sum(none);
    at::Tensor small = at::ones({2}, at::kByte);
    EXPECT_THROW(group.sum(small), Error);
    at::Tensor across = at::ones({3, 2}, at::kFloat).t();
    EXPECT_THROW(group.sum(across), Error);
  });
  EXPECT_EQ(errors, (std::vector<std::string>{"", "", ""}));
}

TEST(ProcessGroup, GathersAndTellsWhatRankZeroHas) {
  const auto errors = run_processes(3, [](ProcessGroup& group) {
    const at::Tensor all = group.gather(at::full({2, 2}, group.rank() + 0.5, at::kDouble));
    EXPECT_EQ(all.sizes(), (at::IntArrayRef{3, 2, 2}));
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_TRUE(at::equal(all[rank], at::full({2, 2}, rank + 0.5, at::kDouble)));
    }
    const std::string large(3'000'000, static_cast<char>('a' + group.rank()));
    EXPECT_EQ(group.from_first(large), std::string(3'000'000, 'a'));
    EXPECT_EQ(group.from_first(group.leads() ? "" : "not asked"), "");
    const std::string mine(static_cast<std::size_t>(group.rank()), 'x');
    EXPECT_EQ(group.gather(mine), (std::vector<std::string>{"", "x", "xx"}));
    EXPECT_FALSE(group.any(false));
    EXPECT_TRUE(group.any(group.rank() == 2));
  });
  EXPECT_EQ(errors, (std::vector<std::string>{"", "", ""}));
}

TEST(ProcessGroup, NoticesThatAnotherProcessEnded) {
  for (const std::int64_t count : {4, 1'000'000}) {
    const auto begin = std::chrono::steady_clock::now();
    const auto errors = run_processes(3, [&](ProcessGroup& group) {
      at::Tensor values = at::ones({count});
      group.sum(values);
      if (group.rank() == 1) return;
      group.sum(values);
    });
    EXPECT_EQ(errors[1], "");
    for (const int rank : {0, 2}) {
      EXPECT_CONTAINS(errors[static_cast<std::size_t>(rank)], " of 3 is gone: it ended");
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
  }
}

TEST(ProcessGroup, GivesUpAProcessThatIsSilentTooLong) {
  const auto errors = run_processes(
      2,
      [&](ProcessGroup& group) {
        at::Tensor values = at::ones({4});
        group.sum(values);
        if (group.rank() == 1) std::this_thread::sleep_for(1500ms);
        group.sum(values);
      },
      500ms);
  EXPECT_CONTAINS(errors[0], "rank 1 of 2 has been silent for 0.5 s");
}

TEST(ProcessGroup, NoticesProcessesAtDifferentPlaces) {
  const auto errors = run_processes(2, [](ProcessGroup& group) {
    at::Tensor values = at::ones({group.rank() == 0 ? 4 : 5});
    group.sum(values);
  });
  EXPECT_CONTAINS(errors[0] + errors[1], "is at another place than rank");
}

std::optional<ProcessPlace> place_by(std::map<std::string, std::string> variables) {
  return find_place([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(ProcessPlace, IsWhatTheVariablesSay) {
  EXPECT_FALSE(place_by({}));
  EXPECT_FALSE(place_by({{"WORLD_SIZE", ""}, {"RANK", ""}}));
  // Alone: nobody is met, and nowhere.
  EXPECT_FALSE(place_by({{"WORLD_SIZE", "1"}, {"RANK", "0"}}));
  const auto place = place_by({{"WORLD_SIZE", "4"},
                               {"RANK", "3"},
                               {"LOCAL_RANK", "1"},
                               {"LOCAL_WORLD_SIZE", "2"},
                               {"MASTER_ADDR", "node1"},
                               {"MASTER_PORT", "29500"},
                               {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                               {"TORCHELASTIC_RESTART_COUNT", "2"}});
  ASSERT_TRUE(place);
  EXPECT_EQ(place->name(), "rank 3 of 4");
  EXPECT_EQ(place->local_rank, 1);
  EXPECT_EQ(place->local_size, 2);
  EXPECT_EQ(place->host, "node1");
  EXPECT_EQ(place->port, 29500);
  EXPECT_TRUE(place->agent_listens);
  EXPECT_EQ(place->attempt, "2");
}

TEST(ProcessPlace, IsRefusedWhereTheVariablesMakeNoSense) {
  const auto message = [](const std::map<std::string, std::string>& variables) {
    return test::message_of<ConfigError>([&] { place_by(variables); });
  };
  EXPECT_EQ(message({{"WORLD_SIZE", "2"}}), "WORLD_SIZE is 2, but RANK is not set");
  EXPECT_EQ(message({{"RANK", "0"}}), "RANK is 0, but WORLD_SIZE is not set");
  EXPECT_CONTAINS(message({{"WORLD_SIZE", "2"}, {"RANK", "2"}}),
                  "RANK cannot be 2 where WORLD_SIZE is 2");
  EXPECT_CONTAINS(message({{"WORLD_SIZE", "2"}, {"RANK", "-1"}}), "RANK cannot be \"-1\"");
  EXPECT_CONTAINS(message({{"WORLD_SIZE", "two"}, {"RANK", "0"}}), "WORLD_SIZE cannot be \"two\"");
  EXPECT_CONTAINS(message({{"WORLD_SIZE", "0"}, {"RANK", "0"}}), "WORLD_SIZE cannot be \"0\"");
  EXPECT_CONTAINS(message({{"WORLD_SIZE", "2"}, {"RANK", "0"}}), "MASTER_ADDR is not set");
  EXPECT_CONTAINS(message({{"WORLD_SIZE", "2"}, {"RANK", "0"}, {"MASTER_ADDR", "localhost"}}),
                  "MASTER_PORT is not set");
  EXPECT_CONTAINS(message({{"WORLD_SIZE", "2"},
                           {"RANK", "0"},
                           {"MASTER_ADDR", "localhost"},
                           {"MASTER_PORT", "70000"}}),
                  "MASTER_PORT cannot be \"70000\" (expected 1 to 65535)");
}

ProcessPlace on_loopback(int rank, int size, std::uint16_t port) {
  ProcessPlace place;
  place.rank = rank;
  place.size = size;
  place.host = "127.0.0.1";
  place.port = port;
  return place;
}

TEST(Rendezvous, BringsProcessesTogetherInAnyOrder) {
  const std::uint16_t port = test::free_port();
  std::vector<std::string> errors(3);
  std::vector<std::jthread> threads;
  for (const int rank : {2, 1, 0}) {  // rank 0, which the others look for, comes last
    threads.emplace_back([&, rank] {
      try {
        const auto group = open_process_group(on_loopback(rank, 3, port), at::kCPU, 60s);
        at::Tensor values = at::full({3}, rank, at::kFloat);
        group->sum(values);
        EXPECT_EQ(values[2].item<float>(), 3.0f);
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
    std::this_thread::sleep_for(200ms);
  }
  threads.clear();
  EXPECT_EQ(errors, (std::vector<std::string>{"", "", ""}));
}

TEST(Rendezvous, SaysWhoDidNotCome) {
  const std::uint16_t port = test::free_port();
  EXPECT_CONTAINS(test::message_of<ConfigError>([&] { meet(on_loopback(1, 2, port), 1s); }),
                  "rank 1 of 2: nobody answers at MASTER_ADDR 127.0.0.1, MASTER_PORT");
  EXPECT_CONTAINS(test::message_of<ConfigError>([&] { meet(on_loopback(0, 2, port), 1s); }),
                  "rank 0 of 2: rank 1 did not come");
  ProcessPlace nowhere = on_loopback(1, 2, port);
  nowhere.host = "no.such.host.invalid";
  EXPECT_CONTAINS(test::message_of<ConfigError>([&] { meet(nowhere, 1s); }),
                  "MASTER_ADDR no.such.host.invalid: ");
}

TEST(Rendezvous, RefusesAPortThatIsTakenAndARankThatIsThereTwice) {
  const std::uint16_t port = test::free_port();
  std::string first, second, third;
  std::jthread zero(
      [&] { first = test::message_of<ConfigError>([&] { meet(on_loopback(0, 3, port), 6s); }); });
  std::this_thread::sleep_for(500ms);
  third = test::message_of<ConfigError>([&] { meet(on_loopback(0, 3, port), 2s); });
  std::jthread one(
      [&] { test::message_of<ConfigError>([&] { meet(on_loopback(1, 3, port), 4s); }); });
  std::this_thread::sleep_for(500ms);
  second = test::message_of<ConfigError>([&] { meet(on_loopback(1, 3, port), 2s); });
  zero.join();
  EXPECT_CONTAINS(first, "did not come");
  EXPECT_CONTAINS(second, "RANK 1 is there twice");
  EXPECT_CONTAINS(third, fmt::format("MASTER_PORT {} failed", port));
}

}  // namespace
}  // namespace gala
