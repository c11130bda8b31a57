#include "gala/data/describe.h"

#include "support.h"

namespace gala {
namespace {

using test::fixture;
using test::read_text;
using test::TemporaryFolder;
using test::write_text;

TEST(Describe, CountsClassesSizesAndUnreadableFiles) {
  const TemporaryFolder folder;
  write_text(folder / "cat/1.png", read_text(fixture("grey8.png")));    // 19 x 13
  write_text(folder / "cat/2.jpg", read_text(fixture("rgb_420.jpg")));  // 35 x 21
  write_text(folder / "cat/3.jpg", "");
  write_text(folder / "dog/1.png", read_text(fixture("rgb8.png")).substr(0, 60));
  const DataSource source = open_data(Spec{"folder", {{"path", folder.path().string()}}});
  for (int threads : {1, 3}) {
    std::int64_t told = 0;
    const auto summary =
        describe_data(source, threads, [&](std::int64_t done) { told = done; }).at(0);
    EXPECT_EQ(told, 4);
    EXPECT_EQ(summary.pictures, 4);
    EXPECT_EQ(summary.class_counts, (std::vector<std::int64_t>{3, 1}));
    EXPECT_EQ(summary.smallest_height, 13);
    EXPECT_EQ(summary.smallest_width, 19);
    EXPECT_EQ(summary.largest_height, 21);
    EXPECT_EQ(summary.largest_width, 35);
    ASSERT_EQ(summary.unreadable.size(), 2u);
    EXPECT_EQ(summary.unreadable[0], (folder / "cat/3.jpg").string() + ": the file is empty");
    EXPECT_TRUE(summary.unreadable[1].starts_with((folder / "dog/1.png").string()));
  }
}

TEST(Describe, HasNoClassesWithoutLabels) {
  const DataSource source{{}, {{"bare", test::counting_pictures(3, 0)}}};
  EXPECT_TRUE(describe_data(source, 1).at(0).class_counts.empty());
}

}  // namespace
}  // namespace gala
