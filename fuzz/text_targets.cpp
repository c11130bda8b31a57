// Specs, plans, training plans, records and traces: text that people and gala write.
#include <fstream>

#include "fuzz/scratch.h"
#include "gala/base/problems.h"
#include "gala/base/spec.h"
#include "gala/protocol/plan.h"
#include "gala/protocol/store.h"
#include "gala/protocol/trace.h"
#include "gala/report/report.h"
#include "gala/train/plan.h"

namespace gala::fuzz {

void spec(Bytes bytes) {
  accepted([&] {
    const Spec parsed = Spec::parse(as_text(bytes));
    require(Spec::parse(parsed.to_string()) == parsed, "a spec does not print back");
  });
  accepted([&] {
    const std::vector<Spec> parts = parse_specs(as_text(bytes));
    require(parse_specs(to_string(parts)) == parts, "specs do not print back");
  });
}

void plan(Bytes bytes) {
  Problems problems;
  ExperimentPlan parsed = parse_plan(std::string(as_text(bytes)), "plan.toml", problems);
  for (const PlannedRun& run : parsed.runs) {
    if (problems.empty()) require(!run.describe().empty(), "a run has no name");
  }
  accepted([&] { problems.throw_if_any("plan.toml"); });
}

void train_plan(Bytes bytes) {
  Problems problems;
  TrainPlan parsed = parse_train_plan(std::string(as_text(bytes)), problems);
  accepted([&] { parsed.set_data_path("/data"); });
  accepted([&] { problems.throw_if_any("plan.toml"); });
}

/// A store of records, and all that is printed from it.
void record(Bytes bytes) {
  static const Scratch scratch;
  scratch.write("records.jsonl", as_text(bytes));
  const bool readable = accepted([&] {
    const Store store(scratch.path(), Store::Access::kRead);
    for (const Record& one : store.records()) {
      // What is read is written again as it was, whatever the names hold.
      using Json = nlohmann::ordered_json;
      const std::string text = one.to_json().dump(-1, ' ', false, Json::error_handler_t::replace);
      const Record again = Record::from_json(nlohmann::json::parse(text));
      require(again.to_json().dump(-1, ' ', false, Json::error_handler_t::replace) == text,
              "a record does not print back");
    }
  });
  // A report takes a tenth of a second: one format for each file, by its size.
  if (readable) {
    accepted([&] { make_report(scratch.path(), static_cast<ReportFormat>(bytes.size() % 6)); });
  }
}

/// A trace of `gala adapt --trace` with the pictures of it, and one that lies packed beside a store.
void trace(Bytes bytes) {
  static const Scratch scratch;
  const auto lines = scratch.write("trace.jsonl", as_text(bytes));
  accepted([&] { make_report(lines, ReportFormat::kJson); });
  accepted([&] { make_report(lines, ReportFormat::kSvg); });
  accepted([&] { make_report(lines, ReportFormat::kHtml); });
  // The bytes as such, then the text in a whole archive.
  accepted([&] { read_store_trace(lines); });
  const auto packed = scratch.write("packed.jsonl.gz", gzip(std::string(as_text(bytes))));
  accepted([&] { read_store_trace(packed).to_json(); });
}

}  // namespace gala::fuzz
