#include "support.h"

#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>

#include "gala/data/array_dataset.h"

namespace gala::test {

TemporaryFolder::TemporaryFolder() {
  static std::atomic<int> number{0};
  path_ = std::filesystem::temp_directory_path() /
          fmt::format("gala_test_data_{}_{}", ::getpid(), number++);
  std::filesystem::create_directories(path_);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path fixture(std::string_view name) {
  return std::filesystem::path(GALA_TEST_SOURCE_DIR) / "tests/data/fixtures" / name;
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_text(const std::filesystem::path& path, std::string_view text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

DataSource open_at(const std::string& spec, const std::filesystem::path& path) {
  Spec parsed = Spec::parse(spec);
  parsed.set("path", path.string());
  return open_data(parsed);
}

std::shared_ptr<const Dataset> counting_pictures(std::int64_t count, std::int64_t classes,
                                                 std::uint8_t first) {
  std::vector<std::uint8_t> pixels;
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    pixels.insert(pixels.end(), 12, static_cast<std::uint8_t>(first + i));
    if (classes > 0) labels.push_back(i % classes);
  }
  return std::make_shared<ArrayDataset>(own_pictures("counting", std::move(pixels), 2, 2, 3),
                                        std::move(labels));
}

}  // namespace gala::test
