#pragma once
#include <cstdint>
#include <vector>

#include "gala/base/random.h"
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

}  // namespace gala
