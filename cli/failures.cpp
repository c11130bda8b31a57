#include "cli/failures.h"

#include "gala/base/error.h"
#include "gala/base/words.h"

namespace gala {

bool Failures::attempt(const std::function<void()>& work) {
  try {
    work();
    return true;
  } catch (const std::exception& problem) {
    messages_.push_back(in_words(problem));
    return false;
  }
}

void Failures::throw_if_any() const {
  if (any()) fail("{}", fmt::join(messages_, "; "));
}

}  // namespace gala
