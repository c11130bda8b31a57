#pragma once
#include <cstdint>

#include "gala/data/loader.h"
#include "gala/model/model.h"

namespace gala {

/// How many of a stream's labelled images a network gets right.
struct Evaluation {
  std::int64_t images = 0;
  std::int64_t correct = 0;

  double accuracy() const {
    return images > 0 ? static_cast<double>(correct) / static_cast<double>(images) : 0;
  }
};

/// Scores the network with its running statistics, which do not change, and without augmentation.
/// Throws Interrupted when the user asked to stop.
Evaluation evaluate(Model& model, const Stream& stream, int loader_threads);

/// Batches on their way to a device: page-locked memory and copies that do not wait, on a GPU.
struct DeviceBatch {
  at::Tensor images;  ///< [N, 3, H, W]; channels-last on a GPU, which computes faster so
  at::Tensor labels;  ///< [N], int64

  static DeviceBatch of(const Batch& batch, at::Device device);
};

}  // namespace gala
