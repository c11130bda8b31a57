#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace gala {

/// A file that grows line by line while a run goes on, and can be taken up again: a saved position
/// says how much of it belongs to the run so far. Lines reach the operating system with `flush`;
/// those that it did not take, on a full disk, are part of the position and so not lost.
class LineFile {
 public:
  /// Nothing is written while the path is empty.
  LineFile() = default;
  ~LineFile();
  LineFile(LineFile&& other) noexcept;
  LineFile& operator=(LineFile&&) = delete;

  /// Begins a new file.
  void open(const std::filesystem::path& path);
  /// Goes on with the file of an interrupted run: what lies behind the saved position is cut off.
  /// A file other than the saved one, however spelled, begins anew; it gets the lines that were not
  /// taken only where the saved one had taken nothing. Throws ConfigError when the file lacks what the
  /// run had written.
  void reopen(const std::filesystem::path& path, const nlohmann::json& position);

  bool is_open() const { return descriptor_ >= 0; }
  /// True when the file holds nothing yet.
  bool empty() const { return written_ == 0 && pending_.empty(); }
  /// Adds a line to what `flush` will write.
  void write(const std::string& line);
  /// Hands the lines to the operating system, so that a killed program has written them. Throws Error
  /// when it does not take them.
  void flush();
  /// For a saved state.
  nlohmann::json position() const;

 private:
  void open_with(const std::filesystem::path& path, int flags);

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uintmax_t written_ = 0;  ///< bytes that the operating system took
  std::string pending_;         ///< and those that it has not been given yet
};

}  // namespace gala
