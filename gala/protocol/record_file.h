#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "gala/protocol/record.h"

namespace gala {

/// What a line of a store says.
struct RecordLine {
  std::int64_t number = 0;  ///< in its file, from 1
  std::string key;
  std::optional<Record> record;  ///< of a run, or
  Labels place;                  ///< a further place of one
  std::string problem;           ///< why it is neither; else empty
};

/// A file of a store: JSON lines, to which lines are only ever added. Knows how far it was read.
class RecordFile {
 public:
  enum class Use {
    kRead,   ///< opened anew at each reading, so that what other hosts wrote is seen
    kShare,  ///< other programs of this host write too: under its lock
    kOwn     ///< nobody else writes to it; must not be there yet
  };

  /// `store` is the folder in which a line that is not whole is set aside. Throws ConfigError when the file
  /// cannot be opened so.
  RecordFile(std::filesystem::path store, std::filesystem::path file, Use use);
  ~RecordFile();
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  const std::filesystem::path& path() const { return file_; }

  /// Excludes other programs of this host while it lives; nothing to be excluded from a file of one's own.
  class Lock {
   public:
    explicit Lock(const RecordFile& file);
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    int descriptor_;
  };

  struct News {
    std::vector<RecordLine> lines;  ///< the whole ones that came since the last reading, parsed
    std::string remark;             ///< what became of a last line that is not whole; else empty
  };
  /// Where the program may write, with the lock held: then what stands behind the last whole line was left by a
  /// writer that died, and is set aside. A reader leaves it out.
  News read();

  /// Adds a line and syncs it to disk, with the lock held and everything before read. Throws Error, and takes
  /// back what was written of it, when that cannot be done.
  void write(const nlohmann::ordered_json& line);

 private:
  std::string set_aside(const std::string& rest);

  std::filesystem::path store_, file_;
  Use use_;
  int descriptor_ = -1;
  std::uint64_t read_ = 0;  ///< bytes taken in
  std::int64_t lines_ = 0;  ///< lines taken in
};

}  // namespace gala
