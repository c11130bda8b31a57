#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gala/base/error.h"
#include "gala/data/dataset.h"

namespace gala::test {

/// A folder that is gone when the test is over.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

std::filesystem::path fixture(std::string_view name);
std::string read_text(const std::filesystem::path& path);
/// Makes the folders above it too.
void write_text(const std::filesystem::path& path, std::string_view text);

/// What `action` says when it throws E; "no error" when it does not throw.
template <class E, class Action>
std::string message_of(Action&& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}
#define EXPECT_CONTAINS(text, part) \
  EXPECT_NE(std::string(text).find(part), std::string::npos) << (text)

/// Opens the data that the spec names, in a folder.
DataSource open_at(const std::string& spec, const std::filesystem::path& path);

/// `count` pictures of 2 x 2, every value of picture i being `first + i`, label i modulo `classes`;
/// unlabelled when that is 0.
std::shared_ptr<const Dataset> counting_pictures(std::int64_t count, std::int64_t classes,
                                                 std::uint8_t first = 0);

}  // namespace gala::test
