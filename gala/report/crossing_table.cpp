#include <algorithm>

#include "gala/report/table_parts.h"

namespace gala {
namespace {

template <class Get>
Names names_of(const Pool& pool, const Get& get) {
  Names names;
  for (const PoolRun& run : pool.candidates()) {
    const std::string& name = get(run);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

}  // namespace

Table crossing_table(const Pool& pool, const std::string& plan) {
  Table table;
  table.title = "Plan " + plan + ", at a glance";
  const Names groups = names_of(pool, [](const PoolRun& run) { return run.labels->group; });
  if (groups.size() < 2) return table;
  const Names networks = names_of(pool, [](const PoolRun& run) { return run.labels->backbone; });
  const Names methods = names_of(pool, [](const PoolRun& run) { return run.labels->row; });
  const bool errors =
      std::all_of(pool.candidates().begin(), pool.candidates().end(),
                  [](const PoolRun& run) { return run.labels->benchmark == "continual"; });
  table.caption =
      std::string(errors ? "Error" : "Accuracy") +
      " while they adapt (%): methods down, what was changed about them across. Bold is the best "
      "of its column, doing nothing included.";
  for (const std::string& group : groups) {
    table.columns.push_back({.name = group.empty() ? "–" : group, .higher_is_better = !errors});
  }
  if (networks.size() > 1) table.heads.emplace_back("Network");
  table.heads.emplace_back("Method");
  std::vector<int> blocks;
  for (const std::string& network : networks) {
    for (const std::string& method : methods) {
      Row row;
      row.method = method;
      row.border = method == methods.front();
      if (networks.size() > 1) row.heads.push_back(network);
      row.heads.push_back(method);
      bool any = false;
      for (const std::string& group : groups) {
        const PoolQuery query{
            .backbone = network, .group = plain_name(group), .row = plain_row(method)};
        const std::vector<const PoolRun*> runs = pool.find(query);
        any = any || !runs.empty();
        row.cells.push_back(mean_cell(runs, errors ? error_of : accuracy_of, 100));
      }
      if (!any) continue;
      blocks.push_back(static_cast<int>(std::find(networks.begin(), networks.end(), network) -
                                        networks.begin()));
      table.rows.push_back(std::move(row));
    }
  }
  // Each row has a loss of its own, and is compared with the others all the same.
  mark_best(table, blocks, /*across_losses=*/true);
  return table;
}

}  // namespace gala
