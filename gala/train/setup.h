#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

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
  std::string prefix;                  ///< of the same file, taken off every name
  std::vector<std::string> not_taken;  ///< of the file it starts from: a head of other classes
  bool default_preprocessing =
      false;  ///< the file it starts from does not say how to prepare images
};

/// Opens network and data and checks them against each other; all that is wrong goes into
/// `problems`, and then the result must not be used.
Training open_training(const TrainPlan& plan, Problems& problems);

/// Every image of every domain once an epoch, in an order drawn anew from (seed, epoch); a segment is
/// an epoch, and what does not fill a batch at its end is left out.
Stream training_stream(const DataSource& source, std::int64_t epochs, std::uint64_t seed);

/// `steps` batches that each hold `batch_size` images of every domain, domain by domain, drawn with
/// replacement from (seed, step); a single segment.
Stream sampled_stream(const DataSource& source, std::int64_t steps, std::int64_t batch_size,
                      std::uint64_t seed);

/// The stream with every full batch repeated `views` times in a row, and without what fills none.
Stream repeat_batches(const Stream& stream, std::int64_t batch_size, std::int64_t views);

/// All images in file order.
Stream evaluation_stream(const DataSource& source);

/// What is learned from, in which order.
struct Curriculum {
  Stream stream;
  std::unique_ptr<const Transform> transform;
  std::int64_t batch_size = 0;  ///< images a step, all views counted
  std::int64_t views = 1;       ///< a batch is so many views of the same images, one after another
  nlohmann::json settings = nlohmann::json::object();  ///< what decides it, but for where data lies
};

Curriculum make_curriculum(const Training& training, const TrainPlan& plan);

/// The spec without its folder, which is one machine's affair.
std::string without_path(Spec spec);

}  // namespace gala
