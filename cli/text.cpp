#include "cli/text.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <sstream>

#include "gala/base/options.h"
#include "gala/base/words.h"

namespace gala {
namespace {

/// Columns a text takes on a terminal: UTF-8 continuation bytes take none.
std::size_t display_width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.,+-%e ") == std::string::npos;
}

}  // namespace

std::string format_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  std::vector<bool> right;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    widths.resize(std::max(widths.size(), rows[r].size()), 0);
    right.resize(widths.size(), true);
    for (std::size_t c = 0; c < rows[r].size(); ++c) {
      widths[c] = std::max(widths[c], display_width(rows[r][c]));
      if (r > 0 && !rows[r][c].empty() && !is_number(rows[r][c])) right[c] = false;
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string padding(widths[c] - display_width(row[c]), ' ');
      line += right[c] ? padding + row[c] : row[c] + padding;
      if (c + 1 < row.size()) line += "  ";
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    text += line;
    text += '\n';
  }
  return text;
}

std::size_t line_width() {
  std::int64_t columns = 80;
  const char* given = std::getenv("COLUMNS");
  winsize size{};
  if (!given || !parse_value(given, columns)) {
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) columns = size.ws_col;
  }
  return static_cast<std::size_t>(std::clamp<std::int64_t>(columns, 50, 100));
}

std::string wrap(const std::string& text, std::size_t width, std::size_t indent) {
  std::istringstream words(text);
  std::string wrapped, word;
  std::size_t column = indent;
  while (words >> word) {
    const std::size_t length = display_width(word);
    if (column > indent && column + 1 + length > width) {
      wrapped += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      wrapped += ' ';
      ++column;
    }
    wrapped += word;
    column += length;
  }
  return wrapped;
}

std::string with_commas(std::int64_t number) {
  const std::string digits = fmt::format("{}", number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const std::size_t left = digits.size() - i;
    if (i > 0 && left % 3 == 0 && digits[i - 1] != '-') text += ',';
    text += digits[i];
  }
  return text;
}

std::string counted(std::int64_t number, const std::string& one) {
  return with_commas(number) + " " + one + (number == 1 ? "" : "s");
}

std::string format_rate(double a_second) {
  if (a_second <= 0 || a_second >= 1) return fmt::format("{:.1f}/s", a_second);
  return fmt::format("{:.1f} s each", 1 / a_second);
}

std::string format_duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

Progress::Progress(std::string label, std::int64_t total, std::int64_t done, bool quiet)
    : label_(std::move(label)),
      total_(total),
      first_(done),
      quiet_(quiet),
      terminal_(isatty(STDERR_FILENO) != 0),
      start_(std::chrono::steady_clock::now()),
      last_(start_) {}

Progress::~Progress() {
  clear();
}

void Progress::advance(std::int64_t done, const std::string& note) {
  if (quiet_) return;
  const auto now = std::chrono::steady_clock::now();
  const double since = std::chrono::duration<double>(now - last_).count();
  if (since < (terminal_ ? 0.1 : 15.0) && done < total_) return;
  if (!terminal_ && done >= total_) return;  // the result follows at once
  last_ = now;
  const double spent = std::chrono::duration<double>(now - start_).count();
  const double rate = spent > 0 ? static_cast<double>(done - first_) / spent : 0;
  const std::string left =
      rate > 0 ? format_duration(static_cast<double>(total_ - done) / rate) + " left" : "";
  if (!terminal_) {
    std::cerr << fmt::format("{} {}/{}  {}  {}  {}\n", label_, done, total_, note,
                             format_rate(rate), left);
    return;
  }
  constexpr std::int64_t kWidth = 24;
  const std::int64_t filled = total_ > 0 ? kWidth * done / total_ : kWidth;
  std::string bar;
  for (std::int64_t i = 0; i < kWidth; ++i) bar += i < filled ? "━" : "╌";
  std::cerr << fmt::format("\r\033[K{} {} {}/{}  {}  {}  {}", label_, bar, done, total_, note,
                           format_rate(rate), left)
            << std::flush;
  drawn_ = true;
}

void Progress::clear() {
  if (drawn_) std::cerr << "\r\033[K" << std::flush;
  drawn_ = false;
}

bool colours() {
  const char* refused = std::getenv("NO_COLOR");
  return isatty(STDERR_FILENO) && !(refused && *refused);
}

void warn(const std::string& message, bool quiet) {
  if (quiet) return;
  std::cerr << (colours() ? "\033[33mwarning:\033[0m " : "warning: ") << readable(message) << '\n';
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace gala
