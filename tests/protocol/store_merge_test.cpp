#include "gala/protocol/store_merge.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "gala/base/error.h"
#include "tests/protocol/sample.h"

namespace gala {
namespace {

namespace fs = std::filesystem;

class StoreMerge : public ::testing::Test {
 protected:
  StoreMerge() : folder_(fs::temp_directory_path() / fmt::format("gala_merge_{}", getpid())) {
    fs::remove_all(folder_);
  }
  ~StoreMerge() override { fs::remove_all(folder_); }

  static Record numbered(int number, const std::string& row = "GALA") {
    Record record = test::sample_record();
    record.trace.clear();
    record.spec.seed = number;
    record.labels.row = row;
    record.labels.trial = number;
    record.key = run_key(record.spec, record.data_hash);
    return record;
  }
  fs::path in(const std::string& name) const { return folder_ / name; }

  fs::path folder_;
};

TEST_F(StoreMerge, AddsWhatIsLackingAndLeavesTheRest) {
  Store into(in("a"), Store::Access::kWrite);
  into.append(numbered(1));
  into.append(numbered(2));
  {
    Store from(in("b"), Store::Access::kWrite);
    Record again = numbered(2, "another place");
    ++again.domains.front().correct;
    from.append(again);
    Record traced = numbered(3);
    traced.trace = "three.jsonl.gz";
    from.append(traced);
    from.add_place(traced.key, numbered(3, "further").labels);
    Record lost = numbered(4);
    lost.trace = "four.jsonl.gz";
    from.append(lost);
    fs::create_directories(in("b/traces"));
    std::ofstream(in("b/traces/three.jsonl.gz")) << "a trace";
  }
  const Store from(in("b"), Store::Access::kRead);
  const MergeCounts counts = merge_stores(into, from);
  EXPECT_EQ(counts.runs, 2);
  EXPECT_EQ(counts.known, 1);
  EXPECT_EQ(counts.other, 1);
  EXPECT_EQ(counts.places, 2);
  EXPECT_EQ(counts.traces, 1);
  EXPECT_EQ(counts.no_trace, 1);
  const Store read(in("a"), Store::Access::kRead);
  ASSERT_EQ(read.records().size(), 4U);
  EXPECT_EQ(read.records()[1].domains, numbered(2).domains);  // the first one's result
  ASSERT_EQ(read.records()[1].places.size(), 1U);
  EXPECT_EQ(read.records()[1].places[0].row, "another place");
  EXPECT_EQ(read.records()[2].places[0].row, "further");
  EXPECT_TRUE(fs::exists(in("a/traces/three.jsonl.gz")));
  // Once more changes nothing.
  Store same(in("a"), Store::Access::kWrite);
  const MergeCounts second = merge_stores(same, from);
  EXPECT_EQ(second.runs + second.places + second.traces, 0);
  EXPECT_EQ(second.known, 3);
  EXPECT_THROW(merge_stores(same, Store(in("a"), Store::Access::kRead)), ConfigError);
}

TEST_F(StoreMerge, ChecksKeysAndTraces) {
  {
    Store store(in("a"), Store::Access::kWrite);
    store.append(numbered(1));
    EXPECT_TRUE(check_store(store).empty());
    Record edited = numbered(2);
    edited.spec.batch_size += 1;
    store.append(edited);
    Record lost = numbered(3);
    lost.trace = "gone.jsonl.gz";
    store.append(lost);
  }
  const Store store(in("a"), Store::Access::kRead);
  const std::vector<std::string> problems = check_store(store);
  ASSERT_EQ(problems.size(), 2U);
  EXPECT_NE(problems[0].find("the key is not that"), std::string::npos);
  EXPECT_NE(problems[1].find("gone.jsonl.gz is gone"), std::string::npos);
}

}  // namespace
}  // namespace gala
