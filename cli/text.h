#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace gala {

/// Rows as aligned columns, two spaces apart; the first row is the heading. Columns that hold only
/// numbers are aligned to the right.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

/// Columns of the terminal, at most 100: from COLUMNS, else from the terminal, else 80.
std::size_t line_width();

/// Breaks a text at spaces so that no line passes `width` columns, when its first line begins at
/// column `indent` and so do the others. A word that is too long stays whole.
std::string wrap(const std::string& text, std::size_t width, std::size_t indent);

/// 1234567 as "1,234,567".
std::string with_commas(std::int64_t number);

/// "1 image", "1,234 images".
std::string counted(std::int64_t number, const std::string& one);

/// "3 s", "4 min 05 s", "2 h 03 min".
std::string format_duration(double seconds);

/// How quickly something goes: "12.5/s", and "2.5 s each" where that is less than one a second.
std::string format_rate(double a_second);

/// How far a long piece of work has come: a bar with rate and time left on a terminal, a plain line
/// now and then elsewhere, nothing when quiet. Writes to standard error.
class Progress {
 public:
  Progress(std::string label, std::int64_t total, std::int64_t done, bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `note` is a short status, such as the accuracy so far.
  void advance(std::int64_t done, const std::string& note);
  /// Clears the bar, so that other lines can be written.
  void clear();

 private:
  std::string label_;
  std::int64_t total_, first_;
  bool quiet_, terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point start_, last_;
};

/// True when standard error is a terminal and NO_COLOR is not set.
bool colours();

/// Writes "warning: ..." to standard error unless quiet.
void warn(const std::string& message, bool quiet = false);

/// A field of a CSV file: quoted where it holds a comma, a quote or the end of a line.
std::string csv_field(const std::string& text);

}  // namespace gala
