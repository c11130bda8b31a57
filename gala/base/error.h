#pragma once
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace gala {

/// Base of everything the library throws on purpose.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The user's words are wrong: an unknown name, a value out of range, a combination that cannot be.
/// The message says what was given, where, and what would be accepted.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// A file is missing or does not hold what it should. The message begins with its path.
class FormatError : public Error {
 public:
  FormatError(std::string path, const std::string& problem)
      : Error(path + ": " + problem), path_(std::move(path)) {}
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Thrown between two units of work after the user asked to stop.
class Interrupted : public Error {
 public:
  using Error::Error;
};

/// The first line of a message: LibTorch's carry a stack trace below it.
inline std::string first_line(const std::string& message) {
  return message.substr(0, message.find('\n'));
}

/// Throws E with a formatted message.
template <class E = Error, class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw E(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace gala
