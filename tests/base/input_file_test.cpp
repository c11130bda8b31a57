#include "gala/base/input_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "gala/base/error.h"

namespace gala {
namespace {

class InputFiles : public ::testing::Test {
 protected:
  InputFiles()
      : folder_(std::filesystem::temp_directory_path() / fmt::format("gala-input-{}", ::getpid())) {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "a") << "0123456789";
  }
  ~InputFiles() override { std::filesystem::remove_all(folder_); }

  template <class Action>
  static std::string refusal(Action&& action) {
    try {
      action();
    } catch (const FormatError& error) {
      return error.what();
    }
    return "no error";
  }
  static std::string read(const InputFile& file, std::uint64_t offset, std::size_t count) {
    std::string text(count, ' ');
    file.read(offset, std::as_writable_bytes(std::span(text)));
    return text;
  }

  std::filesystem::path folder_;
};

TEST_F(InputFiles, ReadWhatIsAskedFor) {
  const InputFile file(folder_ / "a");
  EXPECT_EQ(file.size(), 10u);
  EXPECT_EQ(read(file, 3, 4), "3456");
  EXPECT_EQ(read(file, 10, 0), "");
  const auto whole = FileContent::read(folder_ / "a");
  EXPECT_EQ(std::string(whole->bytes().begin(), whole->bytes().end()), "0123456789");
}

TEST_F(InputFiles, ThatBecomeShorterAreAnError) {
  const InputFile file(folder_ / "a");
  std::filesystem::resize_file(folder_ / "a", 5);
  EXPECT_EQ(read(file, 0, 5), "01234");
  EXPECT_NE(refusal([&] { read(file, 3, 4); }).find("a: the file became shorter while it was read"),
            std::string::npos);
}

TEST_F(InputFiles, AreRegularFiles) {
  EXPECT_NE(refusal([&] { InputFile file(folder_ / "b"); }).find("No such file"),
            std::string::npos);
  EXPECT_NE(refusal([&] { InputFile file(folder_); }).find("is a folder"), std::string::npos);
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_NE(refusal([&] { InputFile file(folder_ / "pipe"); }).find("not a regular file"),
            std::string::npos);
}

TEST_F(InputFiles, ATextSaysWhyItCannotBeRead) {
  EXPECT_EQ(read_text(folder_ / "a"), "0123456789");
  EXPECT_NE(refusal([&] { read_text(folder_); }).find("is a folder"), std::string::npos);
  EXPECT_NE(refusal([&] { read_text(folder_ / "none"); }).find("No such file"), std::string::npos);
  std::ofstream(folder_ / "empty").close();
  EXPECT_NE(refusal([&] { read_text(folder_ / "empty"); }).find("is empty"), std::string::npos);
}

}  // namespace
}  // namespace gala
