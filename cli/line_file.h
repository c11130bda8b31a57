#pragma once
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace gala {

/// A file that grows line by line while a run goes on, and can be taken up again: a saved position
/// says how much of it belongs to the run so far.
class LineFile {
 public:
  /// Nothing is written while the path is empty.
  LineFile() = default;
  /// Begins a new file.
  void open(const std::filesystem::path& path);
  /// Goes on with the file of an interrupted run: what lies behind the saved position is cut off.
  /// A path other than the saved one begins a new file. Throws ConfigError when the file lacks what
  /// the run had written.
  void reopen(const std::filesystem::path& path, const nlohmann::json& position);

  bool is_open() const { return out_.is_open(); }
  /// True when the file holds nothing yet.
  bool empty() const { return written_ == 0; }
  /// Adds a line; throws Error when it cannot be written.
  void write(const std::string& line);
  /// Pushes what was written to the operating system.
  void flush();
  /// For a saved state.
  nlohmann::json position() const;

 private:
  std::filesystem::path path_;
  std::ofstream out_;
  std::uintmax_t written_ = 0;
};

}  // namespace gala
