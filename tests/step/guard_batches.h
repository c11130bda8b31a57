#pragma once
#include <cstdint>
#include <vector>

#include "gala/base/random.h"
#include "gala/step/guard.h"
#include "gala/step/health.h"

namespace gala {

/// Answers drawn evenly from `classes`, each with the given entropy.
inline BatchHealth even_batch(Random& random, int size, int classes, double entropy = 1.0) {
  BatchHealth batch;
  for (int i = 0; i < size; ++i) {
    batch.predictions.push_back(static_cast<std::int64_t>(random.below(classes)));
  }
  batch.entropy_sum = entropy * size;
  return batch;
}

inline BatchHealth constant_batch(int size, std::int64_t prediction, double entropy = 1.0) {
  return {.predictions = std::vector<std::int64_t>(size, prediction),
          .entropy_sum = entropy * size};
}

/// Answers to some images, and the source's.
struct Compared {
  std::vector<std::int64_t> ours, theirs;
};

/// Answers that go through the classes in turn; the first `agreed` of them are the source's, too.
inline Compared compared(int agreed, int images, int classes) {
  Compared answers;
  for (int i = 0; i < images; ++i) {
    answers.ours.push_back(i % classes);
    answers.theirs.push_back((i + (i < agreed ? 0 : 1)) % classes);
  }
  return answers;
}

inline void compare(Guard& guard, int agreed, int images, int classes) {
  const Compared answers = compared(agreed, images, classes);
  guard.compare(answers.ours, answers.theirs);
}

}  // namespace gala
