#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <set>

#include "gala/base/error.h"
#include "gala/protocol/metrics.h"
#include "gala/protocol/store_merge.h"
#include "tests/protocol/sample.h"

namespace gala {
namespace {

namespace fs = std::filesystem;

/// Stores whose writers have a file each, as on hosts between which no lock holds.
class StoreParts : public ::testing::Test {
 protected:
  StoreParts() : folder_(fs::temp_directory_path() / fmt::format("gala_parts_{}", getpid())) {
    fs::remove_all(folder_);
  }
  ~StoreParts() override { fs::remove_all(folder_); }

  static Record numbered(int number, const std::string& date = "2026-01-01T00:00:00Z") {
    Record record = test::sample_record();
    record.trace.clear();
    record.spec.seed = number;
    record.labels.trial = number;
    record.provenance["date"] = date;
    record.key = run_key(record.spec, record.data_hash);
    return record;
  }
  static std::string line(const Record& record) { return record.to_json().dump() + "\n"; }
  static std::string place_line(const Record& record, const Labels& labels) {
    return nlohmann::ordered_json({{"schema", 1},
                                   {"kind", "place"},
                                   {"key", record.key},
                                   {"labels", labels.to_json()}})
               .dump() +
           "\n";
  }

  void add(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary | std::ios::app) << text;
  }
  std::vector<fs::path> parts() const {
    std::vector<fs::path> found;
    if (!fs::exists(folder_ / "records")) return found;
    for (const auto& entry : fs::directory_iterator(folder_ / "records")) {
      found.push_back(entry.path());
    }
    return found;
  }
  Store opened(Store::Access access = Store::Access::kRead) const { return {folder_, access}; }

  fs::path folder_;
};

TEST_F(StoreParts, EveryWriterHasAFileAndSeesTheOthers) {
  Store one = opened(Store::Access::kWriteApart), two = opened(Store::Access::kWriteApart),
        shared = opened(Store::Access::kWrite);
  EXPECT_TRUE(parts().empty()) << "made with the first line";
  EXPECT_TRUE(one.append(numbered(1)));
  EXPECT_TRUE(two.append(numbered(2)));
  EXPECT_TRUE(shared.append(numbered(3)));
  EXPECT_TRUE(one.append(numbered(4)));
  EXPECT_FALSE(two.append(numbered(1)));
  EXPECT_FALSE(one.append(numbered(3)));
  EXPECT_FALSE(shared.append(numbered(4)));
  EXPECT_EQ(parts().size(), 2U);
  shared.refresh();
  EXPECT_EQ(shared.records().size(), 4U);
  const Store reader = opened();
  ASSERT_EQ(reader.records().size(), 4U);
  EXPECT_EQ(reader.records()[0].key, numbered(3).key) << "records.jsonl comes first";
  EXPECT_TRUE(reader.repairs().empty());
  EXPECT_TRUE(check_store(reader).empty());
}

TEST_F(StoreParts, ARunMadeTwiceIsThatWhichEndedFirst) {
  Record early = numbered(1, "2026-01-01T10:00:00Z"), late = numbered(1, "2026-01-01T11:00:00Z");
  late.domains.front().correct += 1;
  late.labels.row = "elsewhere";
  for (const auto& [first, second] : {std::pair{early, late}, std::pair{late, early}}) {
    fs::remove_all(folder_);
    add("records.jsonl", "");
    add("records/a.jsonl", line(first));
    add("records/b.jsonl", line(second));
    const Store store = opened();
    ASSERT_EQ(store.records().size(), 1U);
    const Record& kept = store.records().front();
    EXPECT_EQ(kept.domains, early.domains);
    // It has the places of both.
    std::set<std::string> rows = {kept.labels.row};
    for (const Labels& place : kept.places) rows.insert(place.row);
    EXPECT_EQ(rows, (std::set<std::string>{early.labels.row, "elsewhere"}));
    const std::vector<std::string> problems = check_store(store);
    ASSERT_EQ(problems.size(), 1U);
    EXPECT_NE(problems[0].find("two writers made it, with other results"), std::string::npos);
  }
  // With the same result there is nothing to say.
  fs::remove_all(folder_);
  add("records.jsonl", line(early));
  add("records/a.jsonl", line(numbered(1, "2026-01-01T09:00:00Z")));
  EXPECT_TRUE(check_store(opened()).empty());
  EXPECT_EQ(opened().records().at(0).provenance.at("date"), "2026-01-01T09:00:00Z");
  // One writer knows what it wrote.
  add("records/a.jsonl", line(early));
  EXPECT_THROW(opened(), FormatError);
}

TEST_F(StoreParts, APlaceFindsItsRunInAnyFile) {
  Labels labels = numbered(1).labels;
  labels.plan = "another";
  add("records.jsonl", "");
  add("records/a.jsonl", place_line(numbered(1), labels));
  {
    const Store store = opened();
    const std::vector<std::string> problems = check_store(store);
    ASSERT_EQ(problems.size(), 1U);
    EXPECT_NE(problems[0].find("a.jsonl: line 1 gives a place to run"), std::string::npos);
  }
  add("records/b.jsonl", line(numbered(1)) + place_line(numbered(1), labels));
  const Store store = opened();
  ASSERT_EQ(store.records().size(), 1U);
  ASSERT_EQ(store.records()[0].places.size(), 1U) << "given twice, it is one";
  EXPECT_EQ(store.records()[0].places[0], labels);
  EXPECT_TRUE(check_store(store).empty());
}

TEST_F(StoreParts, ALaterLineTakesAPlaceAlsoFromAnotherFile) {
  Record other = numbered(2);
  other.labels = numbered(1).labels;
  add("records.jsonl", line(numbered(1)));
  add("records/a.jsonl", line(other));
  EXPECT_EQ(placed_runs(opened().records(), "").at(0).record->key, other.key);
  Store writer = opened(Store::Access::kWriteApart);
  EXPECT_TRUE(writer.add_place(numbered(1).key, other.labels));
  EXPECT_FALSE(writer.add_place(numbered(1).key, other.labels));
  EXPECT_EQ(placed_runs(writer.records(), "").at(0).record->key, numbered(1).key);
}

TEST_F(StoreParts, NobodyTouchesTheLineThatAnotherIsWriting) {
  Store writer = opened(Store::Access::kWriteApart);
  writer.append(numbered(1));
  const fs::path part = parts().at(0);
  const std::string name = fs::relative(part, folder_).string(), text = line(numbered(2));
  add(name, text.substr(0, 100));
  add("records.jsonl", "{\"half");
  const auto size = fs::file_size(part), shared_size = fs::file_size(folder_ / "records.jsonl");
  {
    Store other = opened(Store::Access::kWriteApart);
    EXPECT_TRUE(other.append(numbered(3)));
    EXPECT_TRUE(other.repairs().empty());
    EXPECT_EQ(opened().repairs().size(), 2U);
    EXPECT_EQ(fs::file_size(part), size);
    EXPECT_EQ(fs::file_size(folder_ / "records.jsonl"), shared_size);
  }
  Store shared = opened(Store::Access::kWrite);  // mends what it shares, and nothing else
  EXPECT_EQ(shared.repairs().size(), 1U);
  EXPECT_EQ(fs::file_size(part), size);
  add(name, text.substr(100));
  shared.refresh();
  EXPECT_TRUE(shared.contains(numbered(2).key));
}

TEST_F(StoreParts, KeepsEveryLineWhenWritersAreKilled) {
  // Each child tells through the pipe what `append` has promised, and is killed at some moment.
  std::set<std::string> promised;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::vector<pid_t> children;
  for (int child = 0; child < 4; ++child) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    Store store = opened(Store::Access::kWriteApart);
    for (int i = 0;; ++i) {
      Record record = numbered(100000 * child + i);
      record.provenance["padding"] = std::string(200'000, 'x');
      record.key = run_key(record.spec, record.data_hash);
      store.append(record);
      if (::write(ends[1], record.key.data(), 32) != 32) _exit(0);
    }
  }
  ::close(ends[1]);
  char key[32];
  const auto take = [&] {
    const bool whole = ::read(ends[0], key, 32) == 32;
    if (whole) promised.insert(std::string(key, 32));
    return whole;
  };
  while (promised.size() < 20 && take()) {
  }
  for (const pid_t child : children) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  while (take()) {
  }
  ::close(ends[0]);
  const Store store = opened();
  EXPECT_GE(promised.size(), 20U);
  for (const std::string& one : promised) EXPECT_TRUE(store.contains(one));
  EXPECT_LE(store.records().size(), promised.size() + 4) << "written whole, killed before it told";
  // The store goes on, and becomes one file by a merge.
  EXPECT_TRUE(opened(Store::Access::kWriteApart).append(numbered(-1)));
  const fs::path merged = folder_ / "merged";
  Store into(merged, Store::Access::kWrite);
  const Store all = opened();
  EXPECT_EQ(merge_stores(into, all).runs, static_cast<std::int64_t>(all.records().size()));
  EXPECT_FALSE(fs::exists(merged / "records"));
}

TEST_F(StoreParts, WritesTogetherOnALocalDiskAndApartElsewhere) {
  // Nothing is known of the kernel's own file systems: their locks may hold or not.
  EXPECT_EQ(Store::to_write("/proc/self/store"), Store::Access::kWriteApart);
  EXPECT_EQ(Store::to_write("/dev/shm/gala/store"), Store::Access::kWrite);
}

}  // namespace
}  // namespace gala
