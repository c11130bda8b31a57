#include "gala/protocol/store.h"

#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>
#include <exception>
#include <random>

#include "gala/base/error.h"

namespace gala {
namespace {

namespace fs = std::filesystem;

/// Begins with the time, so that files are read in the order in which their writers began.
std::string name_of_part() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> time{};
  std::strftime(time.data(), time.size(), "%Y%m%dT%H%M%SZ", &utc);
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  std::string name = host.data();
  std::erase_if(name, [](unsigned char c) { return !std::isalnum(c) && c != '-'; });
  // Hosts may have one name, and with containers their processes one number.
  return fmt::format("{}_{}_{}_{:08x}.jsonl", time.data(), name, static_cast<long>(getpid()),
                     std::random_device()());
}

std::string date_of(const Record& record) {
  return record.provenance.value("date", "");
}

/// A writer of its own only reads the shared file: a lock of it may not hold, or not be had.
RecordFile::Use use_of_shared(const fs::path& folder, Store::Access access) {
  if (access == Store::Access::kWrite) return RecordFile::Use::kShare;
  if (access == Store::Access::kWriteApart) {
    const RecordFile made(folder, folder / "records.jsonl", RecordFile::Use::kShare);
  }
  return RecordFile::Use::kRead;
}

}  // namespace

bool same_result(const Record& a, const Record& b) {
  return a.domains == b.domains && a.steps == b.steps;
}

Store::Access Store::to_write(const fs::path& folder) {
  // Those that a host has to itself, by the numbers of statfs(2): ext, XFS, Btrfs, tmpfs, overlay, ZFS, F2FS, ramfs.
  constexpr std::array<std::uint32_t, 8> kLocal = {0xEF53,     0x58465342, 0x9123683E, 0x01021994,
                                                   0x794C7630, 0x2FC12FC1, 0xF2F52010, 0x858458F6};
  std::error_code ignored;
  fs::path there = fs::absolute(folder, ignored);
  while (!fs::exists(there, ignored) && there.has_relative_path()) there = there.parent_path();
  struct statfs status {};
  if (statfs(there.c_str(), &status) != 0) return Access::kWrite;
  const auto kind = static_cast<std::uint32_t>(status.f_type);
  const bool local = std::find(kLocal.begin(), kLocal.end(), kind) != kLocal.end();
  return local ? Access::kWrite : Access::kWriteApart;
}

Store::Store(fs::path folder, Access access)
    : folder_(std::move(folder)),
      access_(access),
      main_(folder_, folder_ / "records.jsonl", use_of_shared(folder_, access)) {
  const RecordFile::Lock lock(main_);
  read_news();
}

void Store::refresh() {
  const std::lock_guard guard(mutex_);
  const RecordFile::Lock lock(main_);
  read_news();
}

void Store::find_parts() {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder_ / "records", none)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".jsonl" || parts_.contains(name)) continue;
    parts_.emplace(name,
                   std::make_unique<RecordFile>(folder_, entry.path(), RecordFile::Use::kRead));
  }
}

void Store::read_news() {
  if (access_ == Access::kRead) repairs_.clear();  // a line may be whole by now
  find_parts();
  // A line that cannot be understood is reported once, and does not hide those behind it.
  std::exception_ptr problem;
  const auto read = [&](RecordFile& file) {
    try {
      read_news(file);
    } catch (const FormatError&) {
      if (!problem) problem = std::current_exception();
    }
  };
  read(main_);
  for (const auto& [name, part] : parts_) read(*part);
  give_waiting_places();
  if (problem) std::rethrow_exception(problem);
}

void Store::read_news(RecordFile& file) {
  RecordFile::News news = file.read();
  // To a writer, the half line of another one is work in progress.
  const bool ours = &file == own_ || (&file == &main_ && access_ == Access::kWrite);
  if (!news.remark.empty() && (ours || access_ == Access::kRead)) repairs_.push_back(news.remark);
  std::exception_ptr problem;
  for (RecordLine& line : news.lines) {
    try {
      take_in(std::move(line), file);
    } catch (const FormatError&) {
      if (!problem) problem = std::current_exception();
    }
  }
  if (problem) std::rethrow_exception(problem);
}

void Store::take_in(RecordLine line, const RecordFile& file) {
  ++order_;
  const auto refuse = [&](const std::string& problem) {
    throw FormatError(file.path().string(), fmt::format("line {} {}", line.number, problem));
  };
  if (!line.problem.empty()) refuse(line.problem);
  const auto found = by_key_.find(line.key);
  if (!line.record) {
    if (found != by_key_.end()) return take_place(records_[found->second], line.place, order_);
    if (parts_.empty()) refuse("gives a place to a run that is not there");
    waiting_.push_back({line.key, std::move(line.place), order_,
                        fmt::format("{}: line {}", file.path().string(), line.number)});
    return;
  }
  if (found == by_key_.end()) {
    by_key_.emplace(line.key, records_.size());
    records_.push_back(std::move(*line.record));
    records_.back().line = order_;
    files_.push_back(&file);
    holders_[records_.back().labels] = {line.key, order_};
    return;
  }
  if (files_[found->second] == &file) {
    refuse(fmt::format("has the key {} of an earlier one", line.key));
  }
  take_again(std::move(*line.record), found->second, file);
}

/// A run that another writer made too. The one that ended first counts, whatever is read first: it cannot be
/// overtaken by a line that comes later.
void Store::take_again(Record again, std::size_t number, const RecordFile& file) {
  Record& kept = records_[number];
  const Labels place = again.labels;
  const bool first = date_of(again) < date_of(kept);
  if (!same_result(again, kept)) {
    disagreements_.push_back(
        fmt::format("run {}: two writers made it, with other results; that of {} is left out",
                    again.key, first ? date_of(kept) : file.path().filename().string()));
  }
  if (first) {
    again.labels = std::move(kept.labels);
    again.places = std::move(kept.places);
    again.line = kept.line;
    again.place_lines = std::move(kept.place_lines);
    kept = std::move(again);
    files_[number] = &file;
  }
  take_place(kept, place, order_);
}

void Store::take_place(Record& record, const Labels& place, std::int64_t order) {
  // Writers that do not see each other give a place twice.
  Holder& holder = holders_[place];
  if (holder.key == record.key) return;
  if (order > holder.order) holder = {record.key, order};
  record.places.push_back(place);
  record.place_lines.push_back(order);
}

void Store::give_waiting_places() {
  std::erase_if(waiting_, [&](const Waiting& waiting) {
    const auto found = by_key_.find(waiting.key);
    if (found == by_key_.end()) return false;
    take_place(records_[found->second], waiting.place, waiting.order);
    return true;
  });
}

bool Store::contains(const std::string& key) const {
  const std::lock_guard guard(mutex_);
  return by_key_.contains(key);
}

bool Store::append(const Record& record) {
  const std::lock_guard guard(mutex_);
  const RecordFile::Lock lock(main_);
  std::exception_ptr problem;
  try {
    read_news();
  } catch (const FormatError&) {
    problem =
        std::current_exception();  // of somebody else's line: this record is kept all the same
  }
  const bool fresh = !by_key_.contains(record.key);
  if (fresh) write(record.to_json());
  if (problem) std::rethrow_exception(problem);
  return fresh;
}

bool Store::add_place(const std::string& key, const Labels& labels) {
  const std::lock_guard guard(mutex_);
  const RecordFile::Lock lock(main_);
  read_news();
  if (!by_key_.contains(key)) fail("the store has no run {}", key);
  const auto holder = holders_.find(labels);
  if (holder != holders_.end() && holder->second.key == key) return false;
  write({{"schema", kRecordSchema}, {"kind", "place"}, {"key", key}, {"labels", labels.to_json()}});
  return true;
}

/// With everything before taken in.
void Store::write(const nlohmann::ordered_json& line) {
  if (access_ == Access::kRead) fail("the store was opened for reading");
  if (access_ == Access::kWriteApart && !own_) {
    const std::string name = name_of_part();
    own_ = parts_
               .emplace(name, std::make_unique<RecordFile>(folder_, folder_ / "records" / name,
                                                           RecordFile::Use::kOwn))
               .first->second.get();
  }
  RecordFile& file = own_ ? *own_ : main_;
  file.write(line);
  read_news(file);
}

std::vector<std::string> Store::contradictions() const {
  std::vector<std::string> sentences = disagreements_;
  for (const Waiting& waiting : waiting_) {
    sentences.push_back(
        fmt::format("{} gives a place to run {}, which is not there", waiting.where, waiting.key));
  }
  return sentences;
}

}  // namespace gala
