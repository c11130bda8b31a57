#pragma once
// What the tests of weight files share: scratch files, files built byte by byte, and the files and
// numbers that tools/make_weight_fixtures.py leaves in the build folder.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gala/base/error.h"
#include "gala/tensor/arena.h"
#include "zip_builder.h"

namespace gala::testing {

/// A folder that goes away with the object; in memory where the system has a place for that, since
/// the tests of damaged files write thousands.
class ScratchFolder {
 public:
  ScratchFolder() {
    const bool in_memory = ::access("/dev/shm", W_OK) == 0;
    const auto parent =
        in_memory ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path();
    std::string pattern = (parent / "gala_test_XXXXXX").string();
    if (!::mkdtemp(pattern.data())) throw std::runtime_error("no temporary folder");
    path_ = pattern;
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline void write_file(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::string safetensors_bytes(std::string_view header, std::string_view data) {
  return little_endian<std::uint64_t>(header.size()) + std::string(header) + std::string(data);
}

/// The message of the FormatError that `read` throws for the file; fails the test for anything
/// else.
template <class Read>
std::string refusal(const Read& read, const std::filesystem::path& path) {
  try {
    read(path);
  } catch (const FormatError& error) {
    EXPECT_EQ(error.path(), path.string());
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "not a FormatError: " << error.what();
    return "";
  }
  ADD_FAILURE() << path << " was accepted";
  return "";
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// The Python-made files of fixture `weights`.
inline std::filesystem::path fixture_folder() {
  return std::filesystem::path(GALA_TEST_BUILD_DIR) / "fixtures" / "weights";
}

#define GALA_REQUIRE_WEIGHT_FIXTURES()                                                       \
  if (!std::filesystem::exists(gala::testing::fixture_folder() / "expected.json"))           \
  GTEST_SKIP() << gala::testing::fixture_folder() << " is missing: it is made by ctest, or " \
               << "by tools/make_weight_fixtures.py FOLDER with a Python that has torch"

/// Compares tensors with what Python wrote into expected.json for a file: names in order, types,
/// shapes and every value.
inline void expect_as_python_wrote(const std::vector<NamedTensor>& tensors,
                                   const std::string& file) {
  std::ifstream in(fixture_folder() / "expected.json");
  const auto expected = nlohmann::json::parse(in).at(file);
  std::vector<std::string> names, expected_names;
  for (const auto& item : tensors) names.push_back(item.name);
  for (const auto& item : expected) expected_names.push_back(item.at("name"));
  ASSERT_EQ(names, expected_names) << file;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    SCOPED_TRACE(file + ": " + tensors[i].name);
    const at::Tensor& tensor = tensors[i].tensor;
    EXPECT_EQ(std::string(c10::toString(tensor.scalar_type())),
              expected[i].at("type").get<std::string>());
    EXPECT_EQ(tensor.sizes().vec(), expected[i].at("shape").get<std::vector<std::int64_t>>());
    const auto flat = tensor.to(at::kDouble).contiguous();
    const std::vector<double> values(flat.const_data_ptr<double>(),
                                     flat.const_data_ptr<double>() + flat.numel());
    EXPECT_EQ(values, expected[i].at("values").get<std::vector<double>>());
  }
}

}  // namespace gala::testing
