#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "gala/data/loader.h"
#include "gala/device/process_group.h"
#include "gala/model/model.h"

namespace gala {

/// How many of a stream's labelled images a network gets right.
struct Evaluation {
  struct Part {
    std::string domain;
    std::int64_t images = 0;
    std::int64_t correct = 0;

    double accuracy() const {
      return images > 0 ? static_cast<double>(correct) / static_cast<double>(images) : 0;
    }
  };
  std::vector<Part> parts;  ///< the domains, in the stream's order

  std::int64_t images() const;
  std::int64_t correct() const;
  /// Over all images.
  double accuracy() const;
  /// Over domains, which count alike whatever their sizes.
  double mean_accuracy() const;
};

/// Scores the network in float32 with its running statistics, which do not change, on images that are
/// not augmented. Several processes share the batches, and all know the result.
/// Throws Interrupted when the user asked to stop, in any of them.
Evaluation evaluate(Model& model, const Stream& stream, int loader_threads,
                    ProcessGroup* processes = nullptr);

/// The labels of a batch, [N], int64, on the device of its images.
at::Tensor labels_of(const Batch& batch);

}  // namespace gala
