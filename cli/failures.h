#pragma once
#include <functional>
#include <string>
#include <vector>

namespace gala {

/// What could not be written at the end of some work, gathered so that one full disk does not keep
/// the rest from being saved and said.
class Failures {
 public:
  /// Runs `work`; what it throws is kept. True when it did not.
  bool attempt(const std::function<void()>& work);
  bool any() const { return !messages_.empty(); }
  /// Throws Error that names every failure, if there was one.
  void throw_if_any() const;

 private:
  std::vector<std::string> messages_;
};

}  // namespace gala
