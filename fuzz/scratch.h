#pragma once
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "fuzz/targets.h"
#include "gala/base/error.h"

namespace gala::fuzz {

/// A folder of this process, gone with the object, for readers that want a path; in memory where the
/// system has a place for that.
class Scratch {
 public:
  Scratch() {
    const bool in_memory = ::access("/dev/shm", W_OK) == 0;
    const std::filesystem::path parent =
        in_memory ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path();
    std::string pattern = (parent / "gala_fuzz_XXXXXX").string();
    if (!::mkdtemp(pattern.data())) throw std::runtime_error("no temporary folder");
    path_ = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, std::string_view bytes) const {
    const std::filesystem::path file = path_ / name;
    std::ofstream(file, std::ios::binary).write(bytes.data(), std::ssize(bytes));
    return file;
  }

 private:
  std::filesystem::path path_;
};

inline std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Runs what may be refused. False where it was.
template <class Read>
bool accepted(const Read& read) {
  try {
    read();
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Ends the program unless what must hold holds.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

}  // namespace gala::fuzz
