#include "cli/line_file.h"

#include "gala/base/error.h"

namespace gala {

void LineFile::open(const std::filesystem::path& path) {
  path_ = path;
  written_ = 0;
  out_.open(path, std::ios::binary | std::ios::trunc);
  if (!out_) fail("{}: cannot be written", path.string());
}

void LineFile::reopen(const std::filesystem::path& path, const nlohmann::json& position) {
  if (position.value("path", "") != std::filesystem::absolute(path).string()) return open(path);
  path_ = path;
  written_ = position.at("bytes");
  std::error_code missing;
  if (std::filesystem::file_size(path, missing) < written_ || missing) {
    fail<ConfigError>(
        "{}: the interrupted run had written {} bytes of it, which are no longer there",
        path.string(), written_);
  }
  std::filesystem::resize_file(path, written_);
  out_.open(path, std::ios::binary | std::ios::app);
  if (!out_) fail("{}: cannot be written", path.string());
}

void LineFile::write(const std::string& line) {
  out_ << line << '\n';
  written_ += line.size() + 1;
  if (!out_) fail("{}: writing failed (is the disk full?)", path_.string());
}

void LineFile::flush() {
  if (!is_open()) return;
  out_.flush();
  if (!out_) fail("{}: writing failed (is the disk full?)", path_.string());
}

nlohmann::json LineFile::position() const {
  if (!is_open()) return nlohmann::json::object();
  return {{"path", std::filesystem::absolute(path_).string()}, {"bytes", written_}};
}

}  // namespace gala
