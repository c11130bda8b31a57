#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "gala/model/model.h"
#include "gala/train/evaluate.h"
#include "gala/train/plan.h"

namespace gala {

/// Rounds parameters and running statistics to what a file of this type holds, so that a score
/// belongs to the file and not to the run. Throws Error, naming the tensor, when a value is too large.
void round_weights(Model& model, WeightType type);

/// What a weight file says of the run it came from (metadata `training`).
struct TrainingRecord {
  TrainPlan plan;
  nlohmann::json settings;                           ///< of the trainer
  std::int64_t steps = 0;                            ///< of the whole run
  std::int64_t kept_step = 0;                        ///< whose weights these are
  std::int64_t processes = 1;                        ///< that trained together
  nlohmann::json history = nlohmann::json::array();  ///< of evaluations on the way
  std::string evaluation_data = {};                  ///< its spec, without the folder
  std::optional<Evaluation> evaluation = {};         ///< of the weights as they are written

  nlohmann::json to_json() const;
};

/// Writes the network's weights in the plan's type, with its record, atomically. Equal runs give
/// equal bytes.
void save_trained(const Model& model, const TrainingRecord& record,
                  const std::filesystem::path& path);

/// The record of an earlier run with these settings in a weight file; nothing when the file is
/// missing or came from another run.
std::optional<nlohmann::json> find_record(const std::filesystem::path& path,
                                          const nlohmann::json& settings);

}  // namespace gala
