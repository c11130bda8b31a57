#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include "gala/data/stream.h"
#include "gala/data/transform.h"
#include "gala/model/model.h"
#include "gala/train/plan.h"

namespace gala {

/// What a plan names, opened and found to fit together.
struct Training {
  std::unique_ptr<Model>
      model;  ///< on the CPU, with its first weights and the names of the classes
  DataSource train;
  std::optional<DataSource> evaluation;
};

/// Opens network and data and checks them against each other; all that is wrong goes into
/// `problems`, and then the result must not be used.
Training open_training(const TrainPlan& plan, Problems& problems);

/// Every image of every domain once an epoch, in an order drawn anew from (seed, epoch); a segment is
/// an epoch, and what does not fill a batch at its end is left out.
Stream training_stream(const DataSource& source, std::int64_t epochs, std::uint64_t seed);

/// All images in file order.
Stream evaluation_stream(const DataSource& source);

/// Draws from (seed, step, slot) alone.
std::unique_ptr<const Transform> make_transform(Augmentation augmentation,
                                                const Preprocessing& preprocessing,
                                                std::uint64_t seed);

}  // namespace gala
