#include "gala/protocol/record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <set>

#include "gala/base/error.h"
#include "gala/loss/loss.h"
#include "gala/optim/optimizer.h"
#include "gala/protocol/method.h"
#include "gala/select/selector.h"
#include "tests/protocol/sample.h"

namespace gala {
namespace {

TEST(Record, ReadsBackWhatItWrites) {
  Record record = test::sample_record();
  record.places.clear();
  const std::string text = record.to_json().dump();
  const Record again = Record::from_json(nlohmann::json::parse(text));
  EXPECT_EQ(again.to_json().dump(), text);
  EXPECT_EQ(again.spec, record.spec);
  EXPECT_EQ(again.labels, record.labels);
  EXPECT_EQ(again.over_time.images, record.over_time.images);
}

TEST(Record, CountsAnswersThatAreNotFiniteOnlyWhereThereAreSome) {
  Record record = test::sample_record();
  EXPECT_FALSE(record.to_json().contains("from_source"));
  EXPECT_FALSE(record.to_json().contains("unanswered"));
  record.from_source = 3;
  record.unanswered = 2;
  const Record again = Record::from_json(nlohmann::json::parse(record.to_json().dump()));
  EXPECT_EQ(again.from_source, 3);
  EXPECT_EQ(again.unanswered, 2);
}

/// The example of docs/records.md.
nlohmann::json documented_record() {
  std::ifstream file(GALA_TEST_SOURCE_DIR "/docs/records.md");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::size_t begin = text.find("{", text.find("```json\n{\"schema\""));
  return nlohmann::json::parse(text.substr(begin, text.find("```", begin) - begin));
}

TEST(Record, TheDocumentedOneIsOfOurMaking) {
  const Record record = Record::from_json(documented_record());
  EXPECT_EQ(run_key(record.spec, record.data_hash), record.key);
  EXPECT_NO_THROW(make_loss(record.spec.loss));
  EXPECT_NO_THROW(make_optimizer(Spec::parse(record.spec.optimizer)));
  EXPECT_NO_THROW(make_selector(Spec::parse(record.spec.select), 0));
}

TEST(Record, MetricsFollowFromTheScores) {
  const Record record = test::sample_record();
  // 6/10 and 30/40 right: each domain counts the same.
  EXPECT_DOUBLE_EQ(record.accuracy(), (0.6 + 0.75) / 2);
  EXPECT_DOUBLE_EQ(record.error(), 1 - 0.675);
  EXPECT_DOUBLE_EQ(*record.generalisation(), 0.5);
  EXPECT_DOUBLE_EQ(*record.forgetting(), (0.9 + 0.8) / 2 - (0.7 + 0.6) / 2);
  EXPECT_DOUBLE_EQ(*record.validation_accuracy(), 0.85);
}

TEST(Record, ForgettingIsAlsoCountedWithinTheNormModeOfTheRun) {
  Record record = test::sample_record();
  EXPECT_EQ(record.forgetting_in_norm(), record.forgetting());
  EXPECT_FALSE(record.to_json()["metrics"].contains("forgetting_in_norm"));
  record.source->before_in_norm = {{"x", 10, 8}, {"y", 10, 7}};
  EXPECT_NEAR(*record.forgetting(), 0.2, 1e-12);
  EXPECT_NEAR(*record.forgetting_in_norm(), 0.1, 1e-12);
  EXPECT_NEAR(record.to_json()["metrics"]["forgetting_in_norm"].get<double>(), 0.1, 1e-12);
}

TEST(Record, LeavesOutWhatIsNotDefined) {
  Record record = test::sample_record();
  record.held_out.reset();
  record.source.reset();
  record.validation.clear();
  record.domains = {{"unlabelled", 0, 0}};
  const auto metrics = record.to_json()["metrics"];
  EXPECT_TRUE(metrics.empty()) << metrics.dump();
  EXPECT_FALSE(Record::from_json(record.to_json()).forgetting().has_value());
}

TEST(Record, NumbersThatAreNotFiniteBecomeNull) {
  Record record = test::sample_record();
  record.layers[0].path = std::numeric_limits<double>::infinity();
  record.cost.step_mean = std::nan("");
  const std::string text = record.to_json().dump();
  EXPECT_NE(text.find("\"path\":null"), std::string::npos);
  const Record again = Record::from_json(nlohmann::json::parse(text));
  EXPECT_TRUE(std::isnan(again.layers[0].path));
  EXPECT_TRUE(std::isnan(again.cost.step_mean));
}

TEST(Record, RefusesANewerSchema) {
  auto json = test::sample_record().to_json();
  json["schema"] = kRecordSchema + 1;
  try {
    Record::from_json(json);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "is of schema 2, this program reads up to 1: use a newer gala");
  }
}

TEST(Record, SaysWhatIsMissing) {
  nlohmann::json json = test::sample_record().to_json();
  json.erase("choices");
  EXPECT_THROW(Record::from_json(json), Error);
  json = test::sample_record().to_json();
  json["spec"].erase("norm");
  try {
    Record::from_json(json);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "spec.norm is missing");
  }
  EXPECT_THROW(Record::from_json(nlohmann::json::parse("[1, 2]")), Error);
}

/// Small files that would take all memory or time, or lead tables and pictures astray.
TEST(Record, RefusesNumbersThatCannotBe) {
  const auto refusal = [](const char* place, const char* value) -> std::string {
    nlohmann::json json = test::sample_record().to_json();
    json[nlohmann::json::json_pointer(place)] = nlohmann::json::parse(value);
    try {
      Record::from_json(json);
    } catch (const Error& error) {
      return error.what();
    }
    return "taken";
  };
  const std::string beyond = "a count of";
  EXPECT_EQ(refusal("/steps", "-1").substr(0, beyond.size()), beyond);
  EXPECT_EQ(refusal("/steps", "1e300").substr(0, beyond.size()), beyond);
  EXPECT_EQ(refusal("/domains/0/images", "4000000000000000000").substr(0, beyond.size()), beyond);
  EXPECT_EQ(refusal("/layers/0/block", "2000000000"), "has a layer in block 2000000000");
  EXPECT_EQ(refusal("/choices", "[[-4, 1]]"), "a count of -4 cannot be");
  EXPECT_EQ(refusal("/choices", "[[-3, 1], [0, 4]]"), "taken");
  EXPECT_EQ(refusal("/choices", "[[0, 99999999], [1, 2]]"),
            "has choices of more than 100000000 steps");
  EXPECT_EQ(refusal("/over_time/images", "[[32, 6]]"), "has a run of 6 batches among 5");
  EXPECT_EQ(refusal("/over_time/images", "[[32, 5], [32, 100000000]]"),
            "has a run of 100000000 batches among 5");
}

TEST(Record, IgnoresFieldsItDoesNotKnow) {
  nlohmann::json json = test::sample_record().to_json();
  json["colour"] = "blue";
  EXPECT_EQ(Record::from_json(json).key, test::sample_record().key);
}

TEST(RunSpec, NamesNoMethodThatItDoesNotKnow) {
  const RunSpec spec;
  EXPECT_EQ(spec.loss + spec.select + spec.optimizer + spec.guard, "");
}

TEST(RunKey, DependsOnEveryFieldOfTheSpecAndOnTheData) {
  const RunSpec spec = test::sample_record().spec;
  const std::string key = run_key(spec, "data");
  EXPECT_EQ(key.size(), 32u);
  EXPECT_NE(run_key(spec, "other"), key);
  const nlohmann::json fields = spec.to_json();
  const std::map<std::string, std::string> others = {
      {"partition", "tensor"}, {"head", "adapt"}, {"predict", "after"}};
  for (const auto& [name, value] : fields.items()) {
    nlohmann::json changed = fields;
    if (value.is_boolean()) changed[name] = !value.get<bool>();
    if (value.is_number()) changed[name] = value.get<std::int64_t>() + 1;
    if (value.is_string()) {
      changed[name] = others.contains(name) ? others.at(name) : value.get<std::string>() + "x";
    }
    if (value.is_array()) changed[name].push_back("x");
    if (value.is_object()) changed[name]["x"] = 1;
    EXPECT_NE(run_key(RunSpec::from_json(changed), "data"), key) << name;
  }
  RunSpec in_shadow = spec;
  in_shadow.shadow = true;
  EXPECT_NE(run_key(in_shadow, "data"), key) << "an option that the first records did not have";
}

/// Whatever is added to a run's options, what was measured keeps its name.
TEST(RunKey, OfEveryCommittedRecordIsTheOneItWasStoredUnder) {
  std::ifstream file(GALA_TEST_SOURCE_DIR "/results/records.jsonl");
  std::string line;
  std::size_t count = 0;
  while (std::getline(file, line)) {
    const nlohmann::json json = nlohmann::json::parse(line);
    if (json.at("kind") != "run") continue;  // a further place of a run
    const Record record = Record::from_json(json);
    ASSERT_EQ(run_key(record.spec, record.data_hash), record.key) << "line " << count + 1;
    ASSERT_EQ(nlohmann::json(record.spec.to_json()), json.at("spec")) << "line " << count + 1;
    ++count;
  }
  EXPECT_GT(count, 1000u);
}

/// A plan that asks for what a record's spec says decides on that spec again.
TEST(RunKey, TheMethodOfACommittedRecordIsDecidedAsItWas) {
  std::ifstream file(GALA_TEST_SOURCE_DIR "/results/records.jsonl");
  std::map<std::string, std::unique_ptr<Model>> networks;
  std::set<std::string> seen;
  std::string line;
  while (std::getline(file, line)) {
    const nlohmann::json json = nlohmann::json::parse(line);
    if (json.at("kind") != "run") continue;
    const RunSpec spec = Record::from_json(json).spec;
    RunRequest request;
    MethodOptions::visit([&](const char* name, auto member, const char*) {
      request.method[name] = format_value(spec.*member);
    });
    if (!seen.insert(fmt::format("{} {}", spec.model, fmt::join(request.method, ","))).second) {
      continue;
    }
    std::unique_ptr<Model>& network = networks[spec.model];
    if (!network) network = make_model(Spec::parse(spec.model));
    RunDefaults defaults;  // of the optimizer, where nothing moves
    defaults.method.optimizer = spec.optimizer;
    ASSERT_EQ(decide_method(request, defaults, *network).options,
              static_cast<const MethodOptions&>(spec))
        << line.substr(0, 200);
  }
  EXPECT_GT(seen.size(), 100u);
}

TEST(GapSummary, HasTheQuantilesOfNumPy) {
  // numpy.quantile([0, 1e-9, 3e-5, 2e-3, 0.5, 0], [0, .05, .25, .5, .75, .95, 1])
  const GapSummary gap = GapSummary::of({0, 1e-9, 3e-5, 2e-3, 0.5, 0});
  EXPECT_EQ(gap.steps, 6);
  EXPECT_EQ(gap.zero, 2);
  const std::vector<double> expected = {0, 0, 2.5e-10, 1.50005e-05, 0.0015075, 0.3755, 0.5};
  ASSERT_EQ(gap.quantiles.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(gap.quantiles[i], expected[i], 1e-12) << i;
  }
  // 1e-9 lies in 10^-9 .. 10^-8, number 8; 3e-5 in number 12; 2e-3 in 14; 0.5 in 16.
  EXPECT_EQ(gap.decades[8] + gap.decades[12] + gap.decades[14] + gap.decades[16], 4);
  EXPECT_TRUE(GapSummary::of({}).quantiles.empty());
}

TEST(GapSummary, PassesOverWhatIsNoNumber) {
  const double nan = std::nan(""), inf = INFINITY;
  const GapSummary gap = GapSummary::of({nan, 3e-5, inf, nan, 2e-3, -inf, nan});
  const GapSummary plain = GapSummary::of({3e-5, 2e-3});
  EXPECT_EQ(gap.steps, 2);
  EXPECT_EQ(gap.quantiles, plain.quantiles);
  EXPECT_EQ(gap.decades, plain.decades);
  EXPECT_TRUE(GapSummary::of({nan}).quantiles.empty());
}

}  // namespace
}  // namespace gala
