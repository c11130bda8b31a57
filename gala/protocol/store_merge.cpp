#include "gala/protocol/store_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <system_error>

#include "gala/base/error.h"

namespace gala {
namespace {

namespace fs = std::filesystem;

/// Where the trace of a record lies: only its name counts, a record must not lead out of its store.
fs::path trace_of(const Store& store, const Record& record) {
  return store.folder() / "traces" / fs::path(record.trace).filename();
}

/// Copies a trace in one go: a copy that is stopped leaves no half file under its name.
bool copy_trace(const fs::path& from, const fs::path& to) {
  std::error_code problem;
  if (!fs::is_regular_file(from, problem)) return false;
  fs::create_directories(to.parent_path());
  fs::path part = to;
  part += ".part";
  fs::copy_file(from, part, fs::copy_options::overwrite_existing);
  fs::rename(part, to);
  return true;
}

}  // namespace

MergeCounts merge_stores(Store& into, const Store& from) {
  std::error_code ignored;
  if (fs::equivalent(into.folder(), from.folder(), ignored)) {
    fail<ConfigError>("{} cannot be merged into itself", from.folder().string());
  }
  MergeCounts counts;
  std::map<std::string, const Record*> before;
  for (const Record& record : into.records()) before[record.key] = &record;
  std::map<std::string, bool> differs;
  for (const Record& record : from.records()) {
    const auto there = before.find(record.key);
    if (there != before.end()) differs[record.key] = !same_result(*there->second, record);
  }
  for (const Record& record : from.records()) {
    // The trace first: a record without it would be believed whole.
    if (!record.trace.empty() && !into.contains(record.key)) {
      const bool copied = copy_trace(trace_of(from, record), trace_of(into, record));
      (copied ? counts.traces : counts.no_trace) += 1;
    }
    if (into.append(record)) {
      ++counts.runs;
    } else {
      ++counts.known;
      const auto known = differs.find(record.key);
      counts.other += known != differs.end() && known->second;
      counts.places += into.add_place(record.key, record.labels);
    }
    for (const Labels& labels : record.places) {
      counts.places += into.add_place(record.key, labels);
    }
  }
  return counts;
}

std::vector<std::string> check_store(const Store& store) {
  std::vector<std::string> problems = store.repairs();
  for (std::string& problem : store.contradictions()) problems.push_back(std::move(problem));
  for (const Record& record : store.records()) {
    if (record.key != run_key(record.spec, record.data_hash)) {
      problems.push_back(fmt::format(
          "run {}: the key is not that of what it says (it was edited, or a newer gala wrote it)",
          record.key));
    }
    std::error_code ignored;
    if (!record.trace.empty() && !fs::is_regular_file(trace_of(store, record), ignored)) {
      problems.push_back(fmt::format("run {}: its trace {} is gone", record.key,
                                     trace_of(store, record).string()));
    }
  }
  return problems;
}

}  // namespace gala
