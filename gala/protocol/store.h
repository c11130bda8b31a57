#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gala/protocol/record_file.h"

namespace gala {

/// A folder of records, to which lines are only ever added (docs/records.md): records.jsonl, shared by the programs
/// of a host under its lock, and records/*.jsonl, one for each writer that shares no locks with others. All of them are
/// read as one. A line is there whole, on disk, when `append` returns, or not at all.
class Store {
 public:
  enum class Access {
    kRead,
    kWrite,  ///< into records.jsonl
    kWriteApart  ///< into a file of its own, made with the first line: safe where locks do not cross hosts
  };

  /// How to write to a folder, which need not be there yet: apart on a file system that other hosts may share.
  static Access to_write(const std::filesystem::path& folder);

  /// Reads what is there. For writing, the folder is made where it is missing, and what a writer that
  /// was killed left in mid-line is set aside. Throws ConfigError when the folder cannot be read or
  /// written, FormatError (with the line) when a line is not a record or of a newer schema.
  Store(std::filesystem::path folder, Access access);

  const std::filesystem::path& folder() const { return folder_; }

  /// All runs, those of records.jsonl first, each with every place it was given. Of a run that several writers made
  /// the one that ended first counts. Not while others write to this object.
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
  /// What does not fit together, as sentences: runs that several writers made, with other results; places of runs
  /// that are not there.
  std::vector<std::string> contradictions() const;

 private:
  /// The run that has a place, by the line that says so.
  struct Holder {
    std::string key;
    std::int64_t order = 0;
  };
  /// A line that gives a place to a run that was not read yet: another writer's file has it.
  struct Waiting {
    std::string key;
    Labels place;
    std::int64_t order = 0;
    std::string where;
  };

  void read_news();
  void read_news(RecordFile& file);
  void find_parts();
  void take_in(RecordLine line, const RecordFile& file);
  void take_again(Record again, std::size_t number, const RecordFile& file);
  void take_place(Record& record, const Labels& place, std::int64_t order);
  void give_waiting_places();
  void write(const nlohmann::ordered_json& line);

  std::filesystem::path folder_;
  Access access_;
  mutable std::mutex mutex_;
  RecordFile main_;
  std::map<std::string, std::unique_ptr<RecordFile>> parts_;  ///< by name; that of this writer too
  RecordFile* own_ = nullptr;  ///< of `parts_`; none before the first line
  std::int64_t order_ = 0;     ///< lines taken in
  std::vector<Record> records_;
  std::vector<const RecordFile*> files_;  ///< in which the records stand
  std::map<std::string, std::size_t> by_key_;
  std::map<Labels, Holder> holders_;
  std::vector<Waiting> waiting_;
  std::vector<std::string> repairs_, disagreements_;
};

/// Whether two records of one run say the same of what came out.
bool same_result(const Record& a, const Record& b);

}  // namespace gala
