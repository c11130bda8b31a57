#include "gala/report/tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "gala/base/options.h"
#include "gala/report/published.h"

namespace gala {
namespace {

struct Kind {
  const char* id;
  Table (*make)(const Pool&);
  Wanted wanted;
};

/// Every variant of a table; `make` may be called for empty pools. Where the norm mode is part of a method
/// there is none to choose.
TableSet variants(const std::vector<Record>& records, const Wanted& wanted, const std::string& id,
                  const std::function<Table(const Pool&)>& make, bool of_methods = false) {
  TableSet set{id, {}};
  std::vector<std::string> norms;
  if (!of_methods) norms = norm_choices(records, wanted);
  if (norms.empty()) norms = {""};
  for (const std::string& norm : norms) {
    for (const SelectionRule rule : {SelectionRule::kPerLoss, SelectionRule::kPerDataset,
                                     SelectionRule::kTrainingDomain, SelectionRule::kOracle}) {
      const Pool pool(records, wanted, rule, norm);
      Table table = make(pool);
      table.id = id;
      table.norm = norm.empty() ? fmt::format("{}", fmt::join(pool.norms(), ", ")) : norm;
      const std::vector<std::string> notes = pool.notes();
      table.notes.insert(table.notes.end(), notes.begin(), notes.end());
      if (pool.has_grid()) table.rule = format_value(rule);
      set.variants.push_back(std::move(table));
      if (!pool.has_grid()) break;
    }
  }
  return set;
}

}  // namespace

const Table& TableSet::variant(std::string_view rule, std::string_view norm) const {
  for (const Table& table : variants) {
    if ((rule.empty() || table.rule == rule) && (norm.empty() || table.norm == norm)) return table;
  }
  return variants.front();
}

bool feeds(const std::string& plan, const std::string& table) {
  const std::string name = plain_name(plan);
  return name.starts_with(table) && (name.size() == table.size() ||
                                     !std::isdigit(static_cast<unsigned char>(name[table.size()])));
}

std::vector<TableSet> make_tables(const std::vector<Record>& records) {
  const auto of = [](std::vector<std::string> tables) -> Wanted {
    return [tables = std::move(tables)](const Labels& labels) {
      return std::any_of(tables.begin(), tables.end(),
                         [&](const std::string& table) { return feeds(labels.plan, table); });
    };
  };
  const Wanted conditions = of({"table4", "supplement"});
  // The two halves of them, with what must be known about each.
  const auto continual = [&](const Labels& labels) {
    return conditions(labels) && labels.benchmark == "continual";
  };
  const auto of_domainbed = [&](const Labels& labels) {
    return conditions(labels) && labels.benchmark != "continual";
  };
  const std::vector<Kind> kinds = {
      {"table1", domainbed_table, of({"table1"})},
      {"table2", continual_table, of({"table2"})},
      {"table3", study_table, of({"table3"})},
      {"table4", condition_table, conditions},
      {"supplement1", condition_detail_table, of_domainbed},
      {"supplement2", reset_table, continual},
  };
  std::vector<TableSet> sets;
  for (const Kind& kind : kinds) sets.push_back(variants(records, kind.wanted, kind.id, kind.make));

  std::vector<std::string> others;
  std::set<std::string> seen;
  const auto take = [&](const Labels& labels) {
    if (!seen.insert(labels.plan).second) return;
    for (const Kind& kind : kinds) {
      if (kind.wanted(labels)) return;
    }
    others.push_back(labels.plan);
  };
  for (const Record& record : records) {
    take(record.labels);
    for (const Labels& labels : record.places) take(labels);
  }
  for (const std::string& plan : others) {
    const Wanted wanted = [&](const Labels& labels) { return labels.plan == plan; };
    const bool of_methods = compares_methods(Pool(records, wanted, SelectionRule::kPerLoss, ""));
    sets.push_back(variants(
        records, wanted, "plan-" + plan,
        [&](const Pool& pool) {
          return of_methods ? method_table(pool, plan) : plan_table(pool, plan);
        },
        of_methods));
    if (!of_methods) continue;
    TableSet crossing = variants(
        records, wanted, "plan-" + plan + "-crossing",
        [&](const Pool& pool) { return crossing_table(pool, plan); }, of_methods);
    if (!crossing.variants.front().rows.empty()) sets.push_back(std::move(crossing));
  }
  return sets;
}

}  // namespace gala
