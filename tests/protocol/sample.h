#pragma once
#include "gala/protocol/record.h"

namespace gala::test {

/// A whole record with small numbers.
inline Record sample_record() {
  Record record;
  static_cast<MethodOptions&>(record.spec) = {.loss = "shot",
                                              .select = "gala",
                                              .optimizer = "adam:rate=5e-05",
                                              .norm = "source",
                                              .partition = Granularity::kModule,
                                              .head = HeadRule::kFreeze,
                                              .exclude = {"fc*"},
                                              .seed = 7};
  record.spec.protocol = "domainbed:env=1,trial=0";
  record.spec.model = "resnet18:classes=7";
  record.spec.training = {{"plan", {{"train", {{"seed", 3}}}}}};
  record.spec.data = "domainbed:env=1,split=in";
  record.spec.stream = "single:order=shuffled";
  record.spec.batch_size = 32;
  record.spec.precision = "float32";
  record.data_hash = "d0";
  record.key = run_key(record.spec, record.data_hash);
  record.labels = {"table1",    "",        "GALA", "domainbed", "PACS",
                   "ResNet-18", "cartoon", 10,     "shot",      {{"rate", "5e-05"}}};
  record.domains = {{"a", 10, 6}, {"b", 40, 30}};
  record.held_out = Score{"out", 4, 2};
  record.source =
      SourceScores{false, {{"x", 10, 9}, {"y", 10, 8}}, {}, {{"x", 10, 7}, {"y", 10, 6}}};
  record.validation = {{"x", 10, 9}, {"y", 10, 8}};
  record.steps = 5;
  record.refused = 1;
  record.skipped = 1;
  record.layers = {{"conv1", 1, 432, 1, 1.01, 0.5, 0.25}, {"fc", 0, 70, 0, 0.01, 0.1, 0.1}};
  record.choices = {{Record::kSeveral, 1}, {0, 1}, {Record::kNone, 2}, {Record::kRefused, 1}};
  record.gap = GapSummary::of({1e-3, 2e-5});
  record.over_time = {{32, 32, 32, 10, 32}, {20, 21, 22, 5, 20}, {{0, "a"}, {2, "b"}}};
  record.guard = {2, 1, 0, false, {{{"batch", 20}, {"action", "warn"}}}};
  record.cost = {100, 1, 10, 9, 8, 12, {{"forward", 3}, {"backward", 5}}, 12345, "process"};
  record.provenance = {{"commit", "abc"}};
  record.trace = "traces/x.jsonl.gz";
  return record;
}

}  // namespace gala::test
