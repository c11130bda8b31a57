#include "gala/protocol/store.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <thread>

#include "gala/base/error.h"
#include "gala/protocol/metrics.h"
#include "tests/protocol/sample.h"

namespace gala {
namespace {

namespace fs = std::filesystem;

class StoreTest : public ::testing::Test {
 protected:
  StoreTest() : folder_(fs::temp_directory_path() / fmt::format("gala_store_{}", getpid())) {
    fs::remove_all(folder_);
  }
  ~StoreTest() override { fs::remove_all(folder_); }

  fs::path file() const { return folder_ / "records.jsonl"; }

  std::string content() const {
    std::ifstream in(file(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void add(const std::string& text) const {
    std::ofstream(file(), std::ios::binary | std::ios::app) << text;
  }

  /// Runs `work` in a process of its own; its exit code, or minus the signal that ended it.
  template <class Work>
  static int in_process(Work&& work) {
    return wait_for(start(work));
  }
  template <class Work>
  static pid_t start(Work&& work) {
    const pid_t child = fork();
    if (child == 0) {
      int code = 0;
      try {
        work();
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        code = 3;
      }
      _exit(code);
    }
    return child;
  }
  static int wait_for(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }

  fs::path folder_;
};

Record numbered(int number, std::size_t padding = 0) {
  Record record = test::sample_record();
  record.spec.seed = number;
  record.key = run_key(record.spec, record.data_hash);
  record.provenance["padding"] = std::string(padding, 'x');
  return record;
}

std::set<std::string> keys(const Store& store) {
  std::set<std::string> all;
  for (const Record& record : store.records()) all.insert(record.key);
  return all;
}

TEST_F(StoreTest, KeepsRecordsInOrderAndOnlyOnce) {
  {
    Store store(folder_, Store::Access::kWrite);
    EXPECT_TRUE(store.append(numbered(1)));
    EXPECT_TRUE(store.append(numbered(2)));
    EXPECT_FALSE(store.append(numbered(1)));
    EXPECT_EQ(store.records().size(), 2u);
  }
  const Store again(folder_, Store::Access::kRead);
  ASSERT_EQ(again.records().size(), 2u);
  EXPECT_EQ(again.records()[1].key, numbered(2).key);
  EXPECT_TRUE(again.contains(numbered(1).key));
  EXPECT_FALSE(again.contains(numbered(3).key));
}

TEST_F(StoreTest, GivesARunFurtherPlaces) {
  Store store(folder_, Store::Access::kWrite);
  store.append(numbered(1));
  Labels labels = numbered(1).labels;
  EXPECT_FALSE(store.add_place(numbered(1).key, labels));
  labels.plan = "ablations";
  EXPECT_TRUE(store.add_place(numbered(1).key, labels));
  EXPECT_FALSE(store.add_place(numbered(1).key, labels));
  EXPECT_THROW(store.add_place(numbered(2).key, labels), Error);
  const Store again(folder_, Store::Access::kRead);
  ASSERT_EQ(again.records()[0].places.size(), 1u);
  EXPECT_EQ(again.records()[0].places[0], labels);
}

TEST_F(StoreTest, ALaterLineTakesAPlaceAndGivesItBack) {
  Store store(folder_, Store::Access::kWrite);
  store.append(numbered(1));
  Record other = numbered(2);
  other.labels = numbered(1).labels;
  store.append(other);
  const auto holder = [&] { return placed_runs(store.records(), "").at(0).record->key; };
  EXPECT_EQ(holder(), other.key);
  EXPECT_TRUE(store.add_place(numbered(1).key, other.labels)) << "the plan was changed back";
  EXPECT_EQ(holder(), numbered(1).key);
  EXPECT_FALSE(store.add_place(numbered(1).key, other.labels));
}

TEST_F(StoreTest, KeepsEveryLineOfSeveralWriters) {
  constexpr int kWriters = 4, kEach = 25;
  std::vector<pid_t> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.push_back(start([&] {
      Store store(folder_, Store::Access::kWrite);
      // Half of them are written by everybody, in another order.
      for (int i = 0; i < kEach; ++i) store.append(numbered(1000 * writer + i, 3000));
      for (int i = 0; i < kEach; ++i) store.append(numbered(9000 + (i * 7 + writer) % kEach, 3000));
    }));
  }
  for (const pid_t writer : writers) EXPECT_EQ(wait_for(writer), 0);
  const Store store(folder_, Store::Access::kRead);
  EXPECT_EQ(store.records().size(), static_cast<std::size_t>(kWriters * kEach + kEach));
  EXPECT_EQ(keys(store).size(), store.records().size());
}

TEST_F(StoreTest, ThreadsMayShareOneStore) {
  Store store(folder_, Store::Access::kWrite);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) store.append(numbered(t % 2 * 100 + i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Store(folder_, Store::Access::kRead).records().size(), 40u);
}

TEST_F(StoreTest, KeepsEveryLineWhenWritersAreKilled) {
  // Each child reports through the pipe what `append` has promised; then it is killed at some moment.
  std::set<std::string> promised;
  for (int round = 0; round < 12; ++round) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = start([&] {
      Store store(folder_, Store::Access::kWrite);
      for (int i = 0; i < 10000; ++i) {
        const Record record = numbered(100000 * round + i, 200'000);
        store.append(record);
        if (::write(ends[1], record.key.data(), 32) != 32) return;
      }
    });
    ::close(ends[1]);
    char key[32];
    if (::read(ends[0], key, 32) == 32) promised.insert(std::string(key, 32));
    usleep(static_cast<useconds_t>(1'000 + 1'700 * round));
    kill(child, SIGKILL);
    EXPECT_EQ(wait_for(child), -SIGKILL);
    while (::read(ends[0], key, 32) == 32) promised.insert(std::string(key, 32));
    ::close(ends[0]);
  }
  const Store store(folder_, Store::Access::kWrite);
  const std::set<std::string> kept = keys(store);
  EXPECT_GE(promised.size(), 12u);
  for (const std::string& key : promised) EXPECT_TRUE(kept.contains(key)) << key;
  // At most one more a round: written whole, killed before it could be told.
  EXPECT_LE(kept.size(), promised.size() + 12);
}

TEST_F(StoreTest, SetsATornLineAsideAndSaysSo) {
  { Store(folder_, Store::Access::kWrite).append(numbered(1)); }
  const std::string whole = content();
  for (const std::string& torn :
       {std::string("{\"schema\": 1, \"kind\": \"ru"), std::string(300, '\0'),
        std::string("{\"schema\": 1, \"ki\n"), std::string("\n")}) {
    add(torn);
    {
      const Store reader(folder_, Store::Access::kRead);
      EXPECT_EQ(reader.records().size(), 1u);
      EXPECT_EQ(content(), whole + torn) << "a reader changes nothing";
      ASSERT_EQ(reader.repairs().size(), 1u);
      EXPECT_NE(reader.repairs()[0].find("line 2 is not whole"), std::string::npos);
    }
    const Store store(folder_, Store::Access::kWrite);
    EXPECT_EQ(store.records().size(), 1u);
    ASSERT_EQ(store.repairs().size(), 1u);
    EXPECT_NE(store.repairs()[0].find("line 2 was not whole"), std::string::npos);
    EXPECT_EQ(content(), whole);
    bool kept = false;
    for (const auto& entry : fs::directory_iterator(folder_ / "torn")) {
      std::ifstream in(entry.path(), std::ios::binary);
      kept |= std::string(std::istreambuf_iterator<char>(in), {}) == torn;
    }
    EXPECT_TRUE(kept);
    fs::remove_all(folder_ / "torn");
  }
}

TEST_F(StoreTest, RepairsWhatAnotherWriterLeftWhileItIsOpen) {
  Store store(folder_, Store::Access::kWrite);
  store.append(numbered(1));
  add("{\"half");
  EXPECT_TRUE(store.append(numbered(2)));
  EXPECT_EQ(store.repairs().size(), 1u);
  EXPECT_EQ(Store(folder_, Store::Access::kRead).records().size(), 2u);
}

TEST_F(StoreTest, StopsCleanlyWhenTheDiskIsFull) {
  const int code = in_process([&] {
    signal(SIGXFSZ, SIG_IGN);
    Store store(folder_, Store::Access::kWrite);
    store.append(numbered(1));
    const rlim_t room = fs::file_size(file()) + 1000;
    const rlimit limit{room, room};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      store.append(numbered(2));
    } catch (const Error& error) {
      const std::string text = error.what();
      if (text.find("File too large; the 1 lines before are safe") == std::string::npos) _exit(5);
      if (store.contains(numbered(2).key)) _exit(6);
      _exit(0);
    }
    _exit(4);
  });
  EXPECT_EQ(code, 0);
  Store store(folder_, Store::Access::kWrite);
  EXPECT_EQ(store.records().size(), 1u);
  EXPECT_TRUE(store.repairs().empty()) << "half a line was left behind";
  EXPECT_TRUE(store.append(numbered(2)));
}

TEST_F(StoreTest, RefusesWhatItCannotReadOrWrite) {
  EXPECT_THROW(Store(folder_, Store::Access::kRead), ConfigError);
  EXPECT_FALSE(fs::exists(folder_)) << "reading makes no folder";
  std::ofstream(folder_) << "a file";
  EXPECT_THROW(Store(folder_, Store::Access::kWrite), ConfigError);
  fs::remove(folder_);
  fs::create_directories(file());
  EXPECT_THROW(Store(folder_, Store::Access::kWrite), ConfigError);
  fs::remove_all(folder_);
  fs::create_directories(folder_);
  fs::create_symlink("/dev/full", file());
  EXPECT_THROW(Store(folder_, Store::Access::kWrite), ConfigError);
}

TEST_F(StoreTest, NamesTheLineThatIsWrong) {
  const std::string good = numbered(1).to_json().dump() + "\n";
  auto newer = numbered(2).to_json();
  newer["schema"] = 7;
  for (const auto& [line, problem] :
       {std::pair{std::string("what\n"), "line 1 "},
        std::pair{newer.dump() + "\n", "line 1 is of schema 7, this program reads up to 1"},
        std::pair{std::string("{\"schema\": 1, \"kind\": \"cake\"}\n"),
                  "line 1 is of the unknown kind \"cake\""},
        std::pair{good, "line 2 has the key"}}) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    add(line + good);
    try {
      const Store store(folder_, Store::Access::kWrite);
      ADD_FAILURE() << problem;
    } catch (const FormatError& error) {
      EXPECT_NE(std::string(error.what()).find(problem), std::string::npos) << error.what();
    }
    EXPECT_EQ(content(), line + good) << "nothing is changed";
  }
}

TEST_F(StoreTest, AForeignLineThatIsWrongCostsNoRecord) {
  Store store(folder_, Store::Access::kWrite);
  ASSERT_TRUE(store.append(numbered(1)));
  add(numbered(2).to_json().dump() + "\n{\"schema\": 1, \"kind\": \"cake\"}\n");
  EXPECT_THROW(store.append(numbered(3)), FormatError);
  EXPECT_TRUE(store.append(numbered(4))) << "it is reported once";
  EXPECT_FALSE(store.append(numbered(2)));
  EXPECT_EQ(keys(store), (std::set<std::string>{numbered(1).key, numbered(2).key, numbered(3).key,
                                                numbered(4).key}));
}

TEST_F(StoreTest, ReadsManyLinesInTheirOrder) {
  fs::create_directories(folder_);
  std::string text;
  for (int i = 0; i < 2000; ++i) text += numbered(i).to_json().dump() + "\n";
  add(text);
  const Store store(folder_, Store::Access::kRead);
  ASSERT_EQ(store.records().size(), 2000u);
  for (int i = 0; i < 2000; ++i) {
    ASSERT_EQ(store.records()[static_cast<std::size_t>(i)].spec.seed, i);
  }
}

TEST_F(StoreTest, WritesNamesThatAreNotText) {
  Store store(folder_, Store::Access::kWrite);
  Record record = numbered(1);
  record.domains[0].name = "caf\xe9";
  EXPECT_TRUE(store.append(record));
  EXPECT_EQ(Store(folder_, Store::Access::kRead).records()[0].domains[0].name, "caf\xef\xbf\xbd");
}

}  // namespace
}  // namespace gala
