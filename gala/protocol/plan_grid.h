#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gala/protocol/plan.h"

namespace gala {

/// A name of a plan and the values it takes.
struct PlanAxis {
  std::string name;
  std::vector<std::string> values;
  std::int64_t line = 0;
  bool varies = false;
};
using PlanAxes = std::vector<PlanAxis>;
/// Lays out the runs of a plan: every combination of the values of a row's axes.
class PlanGrid {
 public:
  /// Runs go into the plan, what is wrong with them into `problems`; both must outlive it.
  PlanGrid(ExperimentPlan& plan, Problems& problems) : plan_(plan), problems_(problems) {}

  /// `hyper`: the axes that are hyper-parameters of the row.
  void lay_out(const std::string& row, const PlanAxes& axes, const std::vector<std::string>& hyper);
  /// Whether a value of a run refers to the name, as {name}.
  bool refers_to(const std::string& name) const { return used_.contains(name); }
  /// Adds a problem that many runs may have, once.
  void say(const std::string& problem);

 private:
  using Values = std::map<std::string, std::string>;

  void add_run(const std::string& row, const PlanAxes& axes, const Values& values,
               const std::vector<std::string>& hyper);
  void fill_in_values(const std::string& row, const Values& values, PlannedRun& run);
  void read_request(const std::string& row, PlannedRun& run);
  void read_labels(const std::string& row, const std::vector<std::string>& hyper, PlannedRun& run);
  std::string fill_in(const std::string& text, const Values& values,
                      std::set<std::string>& unknown);

  ExperimentPlan& plan_;
  Problems& problems_;
  std::set<std::string> used_;  ///< names that something refers to
  std::set<std::string> said_;
  std::size_t characters_ = 0;  ///< of the values of all runs
};

}  // namespace gala
