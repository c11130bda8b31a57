#include "gala/protocol/record_file.h"

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
#include "gala/base/json.h"
#include "gala/base/words.h"

namespace gala {
namespace {

namespace fs = std::filesystem;

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

int open_file(const fs::path& store, const fs::path& file, RecordFile::Use use) {
  const bool reads = use == RecordFile::Use::kRead;
  const auto refuse = [&](const std::string& problem) {
    fail<ConfigError>("the store {} cannot be {}: {}", store.string(), reads ? "read" : "written",
                      problem);
  };
  if (!reads) {
    std::error_code problem;
    fs::create_directories(file.parent_path(), problem);
    if (problem) refuse(problem.message());
  } else if (!fs::exists(file)) {
    refuse(fmt::format("{} does not exist", file.string()));
  }
  int flags = reads ? O_RDONLY : O_RDWR | O_CREAT | O_APPEND;
  if (use == RecordFile::Use::kOwn) flags |= O_EXCL;
  const int descriptor = ::open(file.c_str(), flags | O_CLOEXEC, 0666);
  if (descriptor < 0) refuse(std::strerror(errno));
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    refuse(fmt::format("{} is not a file", file.string()));
  }
  return descriptor;
}

RecordLine parse_line(std::string_view line) {
  RecordLine parsed;
  try {
    const nlohmann::json json = parse_json(line);
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
std::vector<RecordLine> parse_lines(const std::vector<std::string_view>& lines) {
  std::vector<RecordLine> parsed(lines.size());
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

RecordFile::RecordFile(fs::path store, fs::path file, Use use)
    : store_(std::move(store)),
      file_(std::move(file)),
      use_(use),
      descriptor_(open_file(store_, file_, use)) {
  if (use_ != Use::kRead) {
    sync_folder(file_.parent_path());
    return;
  }
  ::close(descriptor_);
  descriptor_ = -1;
}

RecordFile::~RecordFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

RecordFile::Lock::Lock(const RecordFile& file)
    : descriptor_(file.use_ == Use::kShare ? file.descriptor_ : -1) {
  while (descriptor_ >= 0 && flock(descriptor_, LOCK_EX) != 0) {
    if (errno != EINTR) fail("the store cannot be locked: {}", std::strerror(errno));
  }
}

RecordFile::Lock::~Lock() {
  if (descriptor_ >= 0) flock(descriptor_, LOCK_UN);
}

RecordFile::News RecordFile::read() {
  std::string text;
  if (use_ == Use::kRead) {
    const int descriptor = open_file(store_, file_, use_);
    try {
      text = read_from(descriptor, read_);
    } catch (...) {
      ::close(descriptor);
      throw;
    }
    ::close(descriptor);
  } else {
    text = read_from(descriptor_, read_);
  }
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
  News news{.lines = parse_lines(lines), .remark = ""};
  for (RecordLine& line : news.lines) line.number = ++lines_;
  read_ += begin;
  if (begin == text.size()) return news;
  if (use_ == Use::kRead) {
    news.remark = fmt::format(
        "{}: line {} is not whole (it is being written, or its writer was killed) and left out",
        file_.string(), lines_ + 1);
  } else {
    news.remark = set_aside(text.substr(begin));
  }
  return news;
}

std::string RecordFile::set_aside(const std::string& rest) {
  const fs::path kept =
      store_ / "torn" /
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
  return fmt::format(
      "{}: line {} was not whole (its writer was killed, or the disk was full); its {} "
      "bytes were {}",
      file_.string(), lines_ + 1, rest.size(), fate);
}

void RecordFile::write(const nlohmann::ordered_json& line) {
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
}

}  // namespace gala
