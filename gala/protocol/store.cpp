#include "gala/protocol/store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <exception>
#include <thread>

#include "gala/base/error.h"
#include "gala/base/file.h"
#include "gala/base/words.h"

namespace gala {
namespace {

namespace fs = std::filesystem;

using ParsedLine = Store::ParsedLine;

/// Excludes other programs while it lives.
class FileLock {
 public:
  explicit FileLock(int descriptor) : descriptor_(descriptor) {
    while (flock(descriptor_, LOCK_EX) != 0) {
      if (errno != EINTR) fail("the store cannot be locked: {}", std::strerror(errno));
    }
  }
  ~FileLock() { flock(descriptor_, LOCK_UN); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int descriptor_;
};

/// Writes everything or throws the errno.
void write_all(int descriptor, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::write(descriptor, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw errno;
    done += static_cast<std::size_t>(count);
  }
  if (fsync(descriptor) != 0) throw errno;
}

/// Makes the entry of a new file last.
void sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY);
  if (descriptor < 0) return;
  fsync(descriptor);
  ::close(descriptor);
}

std::string read_from(int descriptor, std::uint64_t offset) {
  std::string text;
  std::vector<char> buffer(1 << 20);
  while (true) {
    const ssize_t count =
        pread(descriptor, buffer.data(), buffer.size(), static_cast<off_t>(offset + text.size()));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("the store cannot be read: {}", std::strerror(errno));
    if (count == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

int open_file(const fs::path& folder, const fs::path& file, Store::Access access) {
  const auto refuse = [&](const std::string& problem) {
    fail<ConfigError>("the store {} cannot be {}: {}", folder.string(),
                      access == Store::Access::kRead ? "read" : "written", problem);
  };
  if (access == Store::Access::kWrite) {
    std::error_code problem;
    fs::create_directories(folder, problem);
    if (problem) refuse(problem.message());
  } else if (!fs::exists(file)) {
    refuse(fmt::format("{} does not exist", file.string()));
  }
  const int flags = access == Store::Access::kRead ? O_RDONLY : O_RDWR | O_CREAT | O_APPEND;
  const int descriptor = ::open(file.c_str(), flags | O_CLOEXEC, 0666);
  if (descriptor < 0) refuse(std::strerror(errno));
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    refuse(fmt::format("{} is not a file", file.string()));
  }
  return descriptor;
}

ParsedLine parse_line(std::string_view line) {
  ParsedLine parsed;
  try {
    const nlohmann::json json = nlohmann::json::parse(line);
    if (!json.is_object()) fail("is not a record");
    check_schema(json);
    const std::string kind = json.value("kind", "");
    if (kind != "run" && kind != "place") fail("is of the unknown kind \"{}\"", kind);
    parsed.key = json.at("key");
    if (kind == "run") {
      parsed.record = Record::from_json(json);
    } else {
      parsed.place = Labels::from_json(json.at("labels"));
    }
  } catch (const std::exception& error) {
    parsed.problem = in_brief(in_words(error));
  }
  return parsed;
}

/// In the order of the lines; on several threads where there are many.
std::vector<ParsedLine> parse_lines(const std::vector<std::string_view>& lines) {
  std::vector<ParsedLine> parsed(lines.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    constexpr std::size_t kAtOnce = 16;
    for (std::size_t first; (first = next.fetch_add(kAtOnce)) < lines.size();) {
      const std::size_t end = std::min(first + kAtOnce, lines.size());
      for (std::size_t i = first; i < end; ++i) parsed[i] = parse_line(lines[i]);
    }
  };
  constexpr std::size_t kWorthAThread = 256;
  const std::size_t most = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::jthread> helpers;
  for (std::size_t i = 1; i < std::min(most, lines.size() / kWorthAThread); ++i) {
    helpers.emplace_back(work);
  }
  work();
  helpers.clear();  // waits for them
  return parsed;
}

}  // namespace

Store::Store(fs::path folder, Access access)
    : folder_(std::move(folder)),
      file_(folder_ / "records.jsonl"),
      access_(access),
      descriptor_(open_file(folder_, file_, access)) {
  try {
    if (access_ == Access::kWrite) {
      sync_folder(folder_);
      const FileLock lock(descriptor_);
      read_new_lines(/*locked=*/true);
    } else {
      read_new_lines(/*locked=*/false);
    }
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

Store::~Store() {
  ::close(descriptor_);
}

void Store::refresh() {
  const std::lock_guard guard(mutex_);
  if (access_ == Access::kRead) return read_new_lines(/*locked=*/false);
  const FileLock lock(descriptor_);
  read_new_lines(/*locked=*/true);
}

/// Takes in the whole lines behind what was read. Nobody writes while the lock is held, so what then
/// stands behind the last whole line was left by a writer that died.
void Store::read_new_lines(bool locked) {
  if (!locked) repairs_.clear();  // a line may be whole by now
  const std::string text = read_from(descriptor_, read_);
  std::vector<std::string_view> lines;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    // After a power cut even the newline may be there while what precedes it is not.
    if (end + 1 == text.size() && !nlohmann::json::accept(line)) break;
    lines.push_back(line);
    begin = end + 1;
  }
  // A line that cannot be understood is reported once, and does not hide those behind it.
  std::exception_ptr problem;
  for (ParsedLine& parsed : parse_lines(lines)) {
    try {
      take_in(std::move(parsed));
    } catch (const FormatError&) {
      if (!problem) problem = std::current_exception();
    }
  }
  read_ += begin;
  if (begin < text.size()) {
    locked ? set_aside(text.substr(begin)) : repairs_.push_back(left_out());
  }
  if (problem) std::rethrow_exception(problem);
}

void Store::take_in(ParsedLine parsed) {
  ++lines_;
  const auto refuse = [&](const std::string& problem) {
    throw FormatError(file_.string(), fmt::format("line {} {}", lines_, problem));
  };
  if (!parsed.problem.empty()) refuse(parsed.problem);
  const auto found = by_key_.find(parsed.key);
  if (parsed.record) {
    if (found != by_key_.end()) refuse(fmt::format("has the key {} of an earlier one", parsed.key));
    by_key_.emplace(parsed.key, records_.size());
    records_.push_back(std::move(*parsed.record));
    records_.back().line = lines_;
    holders_[records_.back().labels] = parsed.key;
  } else {
    if (found == by_key_.end()) refuse("gives a place to a run that is not there");
    holders_[parsed.place] = parsed.key;
    Record& record = records_[found->second];
    record.places.push_back(std::move(parsed.place));
    record.place_lines.push_back(lines_);
  }
}

std::string Store::left_out() const {
  return fmt::format(
      "{}: line {} is not whole (it is being written, or its writer was killed) and left out",
      file_.string(), lines_ + 1);
}

void Store::set_aside(const std::string& rest) {
  const fs::path kept =
      folder_ / "torn" /
      fmt::format("line{}_{}_{}.txt", lines_ + 1, std::time(nullptr), static_cast<long>(getpid()));
  std::string fate = "moved to " + kept.string();
  try {
    fs::create_directories(kept.parent_path());
    write_atomically(kept, [&](std::ostream& out) { out << rest; });
  } catch (const std::exception& problem) {
    // It is of no use to anybody, and must not stand in the way of whole lines.
    fate = fmt::format("thrown away ({})", in_words(problem));
  }
  if (ftruncate(descriptor_, static_cast<off_t>(read_)) != 0) {
    fail("{} cannot be repaired: {}", file_.string(), std::strerror(errno));
  }
  repairs_.push_back(
      fmt::format("{}: line {} was not whole (its writer was killed, or the disk was full); its {} "
                  "bytes were {}",
                  file_.string(), lines_ + 1, rest.size(), fate));
}

bool Store::contains(const std::string& key) const {
  const std::lock_guard guard(mutex_);
  return by_key_.contains(key);
}

bool Store::append(const Record& record) {
  const std::lock_guard guard(mutex_);
  const FileLock lock(descriptor_);
  std::exception_ptr problem;
  try {
    read_new_lines(/*locked=*/true);
  } catch (const FormatError&) {
    problem =
        std::current_exception();  // of somebody else's line: this record is kept all the same
  }
  const bool fresh = !by_key_.contains(record.key);
  if (fresh) write_line(record.to_json());
  if (problem) std::rethrow_exception(problem);
  return fresh;
}

bool Store::add_place(const std::string& key, const Labels& labels) {
  const std::lock_guard guard(mutex_);
  const FileLock lock(descriptor_);
  read_new_lines(/*locked=*/true);
  if (!by_key_.contains(key)) fail("the store has no run {}", key);
  const auto holder = holders_.find(labels);
  if (holder != holders_.end() && holder->second == key) return false;
  write_line(
      {{"schema", kRecordSchema}, {"kind", "place"}, {"key", key}, {"labels", labels.to_json()}});
  return true;
}

/// With the lock held and everything before taken in.
void Store::write_line(const nlohmann::ordered_json& line) {
  // Names from file systems need not be UTF-8.
  std::string text = line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text += '\n';
  try {
    write_all(descriptor_, text);
  } catch (const int code) {
    // A half line would only be set aside later; without room even that may fail.
    const bool undone = ftruncate(descriptor_, static_cast<off_t>(read_)) == 0;
    fail("{} cannot be written: {}; the {} lines before are safe{}", file_.string(),
         std::strerror(code), lines_,
         undone ? "" : ", and half a line stays behind them until the next run");
  }
  read_new_lines(/*locked=*/true);
}

}  // namespace gala
