#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gala/base/problems.h"
#include "gala/method/method_options.h"
#include "gala/model/precision.h"
#include "gala/protocol/record.h"

namespace gala {

/// What the key of a run takes for the source model's identity.
enum class KnownBy {
  kTraining,  ///< plan and settings, where there are any: weights trained once more by them are the same
  kWeights  ///< those and the weights, number for number
};
constexpr std::array<std::string_view, 2> enum_names(KnownBy) {
  return {"training", "weights"};
}

/// One run as a plan asks for it. What is left empty or 0 the protocol decides.
struct RunRequest {
  std::string protocol;
  std::string model;
  std::string weights;
  std::string train;
  std::string train_set;
  KnownBy known_by = KnownBy::kTraining;
  std::string stream;
  std::int64_t batch_size = 0;
  bool restart_at_borders = false;
  Precision precision = Precision::kFloat32;
  bool trace = false;
  std::string recipe;                         ///< a method by its name; `method` stands over it
  std::map<std::string, std::string> method;  ///< the options of MethodOptions that it names
  std::int64_t seed = 0;                      ///< that of the method, for what else is drawn

  /// The keys of a run beside those of MethodOptions.
  template <class Visitor>
  static void visit(Visitor&& option) {
    option("protocol", &RunRequest::protocol, "what is run: see `gala list protocols`");
    option("model", &RunRequest::model, "network; not needed when weights or train name it");
    option("weights", &RunRequest::weights, "weight file; none: the one `train` writes");
    option("train", &RunRequest::train, "training plan of the weights, beside this plan");
    option("train_set", &RunRequest::train_set, "its settings: name=value,name=value");
    option("known_by", &RunRequest::known_by, "what tells a trained network from another");
    option("stream", &RunRequest::stream, "order of the images; none: the protocol's");
    option("batch_size", &RunRequest::batch_size, "images per batch; 0: the protocol's");
    option("restart_at_borders", &RunRequest::restart_at_borders,
           "back to the source where a domain ends");
    option("precision", &RunRequest::precision, "arithmetic");
    option("trace", &RunRequest::trace, "keep the cosines of every step");
    option("method", &RunRequest::recipe, "a method by its name: see `gala list methods`");
  }
};

/// A run of a plan, with its place in the table as far as the plan tells.
struct PlannedRun {
  RunRequest request;
  Labels labels;
  std::map<std::string, std::string> values;  ///< of all the plan's names, for messages and filters

  /// "Window size: 5, loss=shot, rate=5e-05": the group, if there is one, the row and the axes.
  std::string describe() const;
  std::vector<std::string> axes;  ///< names that vary
};

/// A grid of runs as a TOML file describes it (docs/reproducing.md).
struct ExperimentPlan {
  std::filesystem::path path;
  std::string name;
  std::string title;
  std::vector<PlannedRun> runs;
};

/// Understands a plan and lays out its runs. What is wrong - syntax, unknown names, values of another
/// type, a name that is used nowhere - goes into `problems`.
ExperimentPlan parse_plan(const std::string& text, const std::filesystem::path& path,
                          Problems& problems);
/// The same from a file; throws FormatError when it cannot be read.
ExperimentPlan read_plan(const std::filesystem::path& path, Problems& problems);

/// Keeps the runs whose `name` has one of the values; conditions on different names must all hold.
/// Throws ConfigError when the plan has no such name or value.
void keep_only(ExperimentPlan& plan,
               const std::vector<std::pair<std::string, std::string>>& conditions);

}  // namespace gala
