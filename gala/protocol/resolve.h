#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gala/protocol/method.h"
#include "gala/protocol/plan.h"
#include "gala/protocol/protocol.h"
#include "gala/protocol/source_model.h"

namespace gala {

/// A run with everything decided, found and checked.
struct ReadyRun {
  std::string name;  ///< as the plan's axes describe it
  std::string key;
  RunSpec spec;
  Labels labels;
  std::vector<Labels> places;  ///< further places in the plan that are this same run
  std::string data_hash;
  std::shared_ptr<const TestBed> bed;
  SourceModel source;
  std::string source_data = {};  ///< spec.source_data, with its folders
  bool idle = false;             ///< nothing ever moves
  bool trace = false;
  std::int64_t images = 0;                 ///< that are answered
  std::int64_t batches = 0;                ///< in which they come
  std::vector<std::string> warnings = {};  ///< what may be wrong with it
};

/// Opens what the plan's runs name, decides defaults and computes keys. Each thing is opened once.
/// What is wrong goes into `problems`, each problem once; a run with a problem is left out. Runs that
/// are equal become one.
std::vector<ReadyRun> resolve(const ExperimentPlan& plan, const std::filesystem::path& root,
                              Problems& problems);

/// Puts the relative folders of a protocol below `root`.
Spec below_root(Spec spec, const std::filesystem::path& root);

}  // namespace gala
