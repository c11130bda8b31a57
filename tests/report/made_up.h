#pragma once
#include <string>
#include <vector>

#include "gala/protocol/record.h"
#include "tests/protocol/sample.h"

namespace gala::test {

/// Labels of a DomainBed run.
struct Place {
  std::string plan = "table1", row = "GALA", loss = "pseudo_label", environment = "sketch";
  std::int64_t trial = 0;
  std::map<std::string, std::string> hyper = {};
  std::string dataset = "PACS", backbone = "ResNet-18", benchmark = "domainbed", group = "";
};

/// A made-up run of 1,000 images of which `correct` are right.
inline Record made_up(const Place& place, std::int64_t correct) {
  Record record = sample_record();
  record.labels = {place.plan,     place.group,       place.row,   place.benchmark, place.dataset,
                   place.backbone, place.environment, place.trial, place.loss,      place.hyper};
  record.domains = {{place.environment, 1000, correct}};
  record.spec.seed = correct;
  record.data_hash = place.plan + place.row + place.loss + place.environment + place.group;
  record.key = run_key(record.spec, record.data_hash + std::to_string(place.trial));
  return record;
}

}  // namespace gala::test
