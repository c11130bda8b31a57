#pragma once
#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "gala/base/error.h"
#include "gala/report/tables.h"
#include "tests/report/made_up.h"

namespace gala::test {

inline const TableSet& find(const std::vector<TableSet>& tables, std::string_view id) {
  for (const TableSet& set : tables) {
    if (set.id == id) return set;
  }
  throw Error("no table " + std::string(id));
}

/// The row whose heads end so.
inline const Row& row_of(const Table& table, std::initializer_list<std::string_view> heads) {
  for (const Row& row : table.rows) {
    if (row.heads.size() < heads.size()) continue;
    const auto tail = row.heads.end() - static_cast<std::ptrdiff_t>(heads.size());
    if (std::equal(heads.begin(), heads.end(), tail)) return row;
  }
  throw Error("no row " + std::string(*(heads.end() - 1)));
}

inline const std::vector<std::string> kTargets = {"art_painting", "cartoon", "photo", "sketch"};

/// Three trials of the source model, all layers and GALA; a random layer and batch statistics, which do
/// best, in the last of them alone.
inline std::vector<Record> with_a_row_of_one_trial() {
  std::vector<Record> records;
  for (const std::int64_t trial : {10, 11, 12}) {
    for (const std::string& target : kTargets) {
      const auto add = [&](const char* row, const char* loss, std::int64_t correct) {
        records.push_back(
            made_up({.row = row, .loss = loss, .environment = target, .trial = trial}, correct));
      };
      add("ERM", "", 650);
      add("All layers", "pseudo_label", 700);
      add("GALA", "pseudo_label", 800);
      if (trial < 12) continue;
      add("Batch statistics", "", 850);
      add("Random layer", "pseudo_label", 900);
    }
  }
  return records;
}

inline bool has_note(const Table& table, const std::string& words) {
  return std::any_of(table.notes.begin(), table.notes.end(), [&](const std::string& note) {
    return note.find(words) != std::string::npos;
  });
}

}  // namespace gala::test
