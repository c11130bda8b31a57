#pragma once
#include <concepts>
#include <string>
#include <string_view>
#include <vector>

#include "gala/base/error.h"

namespace gala {

/// Everything that is wrong with a plan, gathered so that all of it can be named at once.
class Problems {
 public:
  void add(std::string problem) { list_.push_back(std::move(problem)); }

  /// Runs `work`; what it has to say of the user's words or files becomes a problem of `where`.
  /// True when there was none.
  template <std::invocable Work>
  bool attempt(std::string_view where, Work&& work) {
    try {
      work();
      return true;
    } catch (const ConfigError& error) {
      add(fmt::format("{}: {}", where, error.what()));
    } catch (const FormatError& error) {
      add(fmt::format("{}: {}", where, error.what()));
    }
    return false;
  }

  bool empty() const { return list_.empty(); }
  const std::vector<std::string>& list() const { return list_; }
  /// Throws ConfigError that begins with `subject` and names every problem.
  void throw_if_any(std::string_view subject) const;

 private:
  std::vector<std::string> list_;
};

}  // namespace gala
