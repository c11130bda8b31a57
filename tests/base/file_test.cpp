#include "gala/base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "gala/base/error.h"

namespace gala {
namespace {

unsigned mode_of(const std::filesystem::path& path) {
  struct stat info {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777;
}

class File : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  unsigned mode_under(mode_t mask, const std::string& name) const {
    const mode_t before = ::umask(mask);
    write_atomically(folder_ / name, [](std::ostream& out) { out << "fresh"; });
    ::umask(before);
    return mode_of(folder_ / name);
  }

  std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / fmt::format("gala_file_{}", ::getpid());
};

TEST_F(File, IsWrittenAsTheUmaskSays) {
  EXPECT_EQ(mode_under(022, "usual"), 0644u);
  EXPECT_EQ(mode_under(077, "private"), 0600u);
  EXPECT_EQ(mode_under(0, "open"), 0666u);
}

TEST_F(File, KeepsItsModeWhenItIsReplaced) {
  std::ofstream(folder_ / "secret") << "old";
  for (const auto& [before, after] : {std::pair{0600u, 0600u}, {0640u, 0640u}, {0755u, 0644u}}) {
    ASSERT_EQ(::chmod((folder_ / "secret").c_str(), before), 0);
    EXPECT_EQ(mode_under(022, "secret"), after);
  }
  std::string text;
  std::ifstream(folder_ / "secret") >> text;
  EXPECT_EQ(text, "fresh");
}

TEST_F(File, ThatCouldNotBeWrittenLeavesTheOldOneAndNothingElse) {
  std::ofstream(folder_ / "kept") << "old";
  EXPECT_THROW(write_atomically(folder_ / "kept", [](std::ostream&) { fail("half way"); }), Error);
  std::string text;
  std::ifstream(folder_ / "kept") >> text;
  EXPECT_EQ(text, "old");
  using Files = std::filesystem::directory_iterator;
  EXPECT_EQ(std::distance(Files(folder_), Files()), 1);
}

}  // namespace
}  // namespace gala
