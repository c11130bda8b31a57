#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gala/adapt/adapter.h"
#include "gala/protocol/record.h"
#include "gala/train/problems.h"

namespace gala {

enum class HeadRule { kAuto, kAdapt, kFreeze };
constexpr std::array<std::string_view, 3> enum_names(HeadRule) {
  return {"auto", "adapt", "freeze"};
}

/// One run as a plan asks for it. What is left empty or 0 the protocol, the selector or the loss
/// decides.
struct RunRequest {
  std::string protocol;
  std::string model;
  std::string weights;
  std::string train;
  std::string train_set;
  std::string stream;
  std::string loss = "pseudo_label";
  std::string select = "gala";
  std::string optimizer;
  std::string norm;
  std::string partition;
  HeadRule head = HeadRule::kAuto;
  std::string include;
  std::string exclude;
  std::int64_t batch_size = 0;
  std::int64_t inner_steps = 1;
  std::int64_t adapt_every = 1;
  bool episodic = false;
  bool restart_at_borders = false;
  PredictWith predict = PredictWith::kAdapting;
  Precision precision = Precision::kFloat32;
  std::string guard = "warn";
  std::int64_t seed = 0;
  bool trace = false;
  template <class Visitor>
  static void visit(Visitor&& option) {
    option("protocol", &RunRequest::protocol, "what is run: see `gala list protocols`");
    option("model", &RunRequest::model, "network; not needed when weights or train name it");
    option("weights", &RunRequest::weights, "weight file; none: the one `train` writes");
    option("train", &RunRequest::train, "training plan of the weights, beside this plan");
    option("train_set", &RunRequest::train_set, "its settings: name=value,name=value");
    option("stream", &RunRequest::stream, "order of the images; none: the protocol's");
    option("loss", &RunRequest::loss, "see `gala list losses`");
    option("select", &RunRequest::select, "see `gala list selectors`");
    option("optimizer", &RunRequest::optimizer, "see `gala list optimizers`");
    option("norm", &RunRequest::norm, "norm mode; none: the protocol's");
    option("partition", &RunRequest::partition, "tensor, module or block; none: the selector's");
    option("head", &RunRequest::head, "whether the last layer adapts; auto: as the loss has it");
    option("include", &RunRequest::include, "patterns of parameters that adapt, with commas");
    option("exclude", &RunRequest::exclude, "patterns of those that do not");
    option("batch_size", &RunRequest::batch_size, "images a batch; 0: the protocol's");
    option("inner_steps", &RunRequest::inner_steps, "optimizer steps on each batch");
    option("adapt_every", &RunRequest::adapt_every, "adapt on every n-th batch");
    option("episodic", &RunRequest::episodic, "back to the source before every batch");
    option("restart_at_borders", &RunRequest::restart_at_borders,
           "back to the source where a domain ends");
    option("predict", &RunRequest::predict, "which forward pass answers");
    option("precision", &RunRequest::precision, "arithmetic");
    option("guard", &RunRequest::guard, "see `gala list guards`");
    option("seed", &RunRequest::seed, "of shuffled streams and selectors that draw");
    option("trace", &RunRequest::trace, "keep the cosines of every step");
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
