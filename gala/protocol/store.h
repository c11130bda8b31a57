#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "gala/protocol/record.h"

namespace gala {

/// A folder of records: records.jsonl, to which lines are only ever added (docs/records.md). Several
/// programs and threads may write at once; a line is there whole, on disk, when `append` returns, or
/// not at all.
class Store {
 public:
  enum class Access { kRead, kWrite };

  /// What a line of the file says.
  struct ParsedLine {
    std::string key;
    std::optional<Record> record;  ///< of a run, or
    Labels place;                  ///< a further place of one
    std::string problem;           ///< why it is neither; else empty
  };

  /// Reads what is there. For writing, the folder is made where it is missing, and what a writer that
  /// was killed left in mid-line is set aside. Throws ConfigError when the folder cannot be read or
  /// written, FormatError (with the line) when a line is not a record or of a newer schema.
  Store(std::filesystem::path folder, Access access);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  const std::filesystem::path& folder() const { return folder_; }

  /// All runs in file order, each with every place it was given. Not while others write to this object.
  const std::vector<Record>& records() const { return records_; }

  /// Takes in what other programs have added since.
  void refresh();
  bool contains(const std::string& key) const;
  /// Adds a run; false, and nothing is written, when its key is there. Throws Error when it cannot be
  /// written; what was there before stays whole. FormatError when another program added a line that
  /// is no record: this one is written before.
  bool append(const Record& record);
  /// Gives the run a further place; false when it has it.
  bool add_place(const std::string& key, const Labels& labels);

  /// What was found broken and set aside, or by a reader left out, as sentences.
  const std::vector<std::string>& repairs() const { return repairs_; }

 private:
  void read_new_lines(bool locked);
  void take_in(ParsedLine parsed);
  std::string left_out() const;
  void set_aside(const std::string& rest);
  void write_line(const nlohmann::ordered_json& line);

  std::filesystem::path folder_, file_;
  Access access_;
  int descriptor_ = -1;
  mutable std::mutex mutex_;
  std::uint64_t read_ = 0;  ///< bytes taken in
  std::int64_t lines_ = 0;  ///< lines taken in
  std::vector<Record> records_;
  std::map<std::string, std::size_t> by_key_;
  std::map<Labels, std::string> holders_;  ///< the run that has a place
  std::vector<std::string> repairs_;
};

}  // namespace gala
