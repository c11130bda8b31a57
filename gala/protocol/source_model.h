#pragma once
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gala/model/model.h"
#include "gala/protocol/plan.h"
#include "gala/train/plan.h"

namespace gala {

/// The network a run starts from.
struct SourceModel {
  Spec network;                   ///< every option written out
  nlohmann::json identity;        ///< where its weights come from, as records have it
  std::filesystem::path weights;  ///< empty: drawn from the seed
  std::string missing;            ///< what to do about weights that are not there; else empty
  std::vector<std::string> classes = {};  ///< as the weights name them, where they do
};

/// Finds out what a run starts from. `folder` is where the plan lies, `root` where relative paths of
/// weights begin, `classes` what the data has. Throws ConfigError or FormatError, also for weights that
/// do not fit; missing ones are no error here: a run whose record exists does not need them.
SourceModel find_source(const RunRequest& request, const std::filesystem::path& folder,
                        const std::filesystem::path& root, std::int64_t classes);

/// What to do about weights that are not there, where nothing is known of the data; else empty.
std::string missing_weights(const RunRequest& request, const std::filesystem::path& folder,
                            const std::filesystem::path& root);

/// A training plan as records name it: every value that decides the weights, no folders.
nlohmann::json training_identity(const TrainPlan& plan);

/// The network with its weights, on the CPU.
std::unique_ptr<Model> open_source(const SourceModel& source, std::uint64_t seed);

}  // namespace gala
