#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "gala/report/figures.h"
#include "gala/report/printers.h"
#include "tests/report/tables_case.h"

namespace gala::test {
namespace {

/// A run of a continual stream that answers 100 images in batches of 50.
Record method_run(const std::string& row, const std::string& loss, std::int64_t correct,
                  double milliseconds, std::int64_t trial = 0, const std::string& group = "") {
  Record record = made_up({.plan = "mine",
                           .row = row,
                           .loss = loss,
                           .environment = "",
                           .trial = trial,
                           .dataset = "CIFAR-10-C",
                           .backbone = "WRN-28-10",
                           .benchmark = "continual",
                           .group = group},
                          correct);
  record.spec.norm = row == "Source" ? "source" : "batch";
  record.spec.select = loss.empty() ? "none" : "norm_affine";
  record.steps = loss.empty() ? 0 : 2;
  record.source = SourceScores{false, {{"clean", 100, 90}}, {}, {{"clean", 100, 90}}};
  if (!loss.empty()) record.source->after[0].correct = 72 + correct / 50;
  record.over_time = {{50, 50}, {40, 40}, {{0, "fog"}}};
  record.cost.batch_mean = milliseconds;
  record.cost.peak_memory = 2'500'000'000;
  record.cost.memory_of = "device";
  record.provenance = {{"gpu", "A GPU"}};
  return record;
}

/// Two ways to do nothing and three methods with two losses, in the order in which their runs ended.
std::vector<Record> methods(const std::string& group = "") {
  return {method_run("Tent", "entropy", 800, 10, 0, group),
          method_run("Source", "", 500, 2, 0, group),
          method_run("ROID", "soft_likelihood_ratio", 850, 25, 0, group),
          method_run("ETA", "entropy", 830, 11, 0, group),
          method_run("Batch statistics", "", 780, 3, 0, group)};
}

std::vector<std::string> methods_of(const Table& table) {
  std::vector<std::string> names;
  for (const Row& row : table.rows) names.push_back(row.method);
  return names;
}

std::size_t column(const Table& table, const std::string& name) {
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].name == name) return c;
  }
  throw Error("no column " + name);
}

TEST(MethodTable, HasTheBestMethodFirstWithWhatItCosts) {
  const std::vector<Record> records = methods();
  const auto tables = make_tables(records);
  const Table& table = find(tables, "plan-mine").variants[0];
  EXPECT_TRUE(table.of_methods);
  EXPECT_EQ(table.heads, std::vector<std::string>{"Method"});
  EXPECT_EQ(methods_of(table),
            (std::vector<std::string>{"ROID", "ETA", "Tent", "Batch statistics", "Source"}));
  EXPECT_EQ(table.sorted_by, 0U);
  const Row& roid = table.rows[0];
  EXPECT_NEAR(roid.cells[0].value, 15, 1e-9);
  EXPECT_NEAR(roid.cells[column(table, "Forget.")].value, 1, 1e-9);
  EXPECT_NEAR(roid.cells[column(table, "ms per image")].value, 0.5, 1e-12);  // 25 ms for 50
  EXPECT_NEAR(roid.cells[column(table, "Memory, GB")].value, 2.5, 1e-12);
  EXPECT_FALSE(roid.cells[0].deviation) << "of one trial there is none";
}

TEST(MethodTable, MarksTheBestOfAllButInCostOfThoseThatAdapt) {
  std::vector<Record> records = methods();
  const auto best_of = [&](const char* name) {
    const auto tables = make_tables(records);
    const Table& table = find(tables, "plan-mine").variants[0];
    std::vector<std::string> best;
    for (const Row& row : table.rows) {
      if (row.cells[column(table, name)].best) best.push_back(row.method);
    }
    return best;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(best_of("Error"), Names{"ROID"}) << "although their losses differ";
  EXPECT_EQ(best_of("ms per image"), Names{"Tent"}) << "although doing nothing is faster";
  EXPECT_EQ(best_of("Forget."), Names{"ROID"});
  records[4] = method_run("Batch statistics", "", 900, 3);
  EXPECT_EQ(best_of("Error"), Names{"Batch statistics"});
  // Times of two machines do not compare.
  records[0].provenance["gpu"] = "Another GPU";
  EXPECT_EQ(best_of("ms per image"), Names{});
  EXPECT_TRUE(has_note(find(make_tables(records), "plan-mine").variants[0],
                       "A GPU; Another GPU. Those of different machines do not compare."));
}

/// What a run was called in the plan that it was made for, another trial say, does not keep it from being compared.
TEST(MethodTable, MarksTheBestAlsoAmongRunsOfOtherPlans) {
  std::vector<Record> records = methods();
  Record& borrowed = records.emplace_back(method_run("DeYO", "entropy", 840, 12));
  borrowed.places = {borrowed.labels};
  borrowed.labels.plan = "other";
  borrowed.labels.trial = 30;
  const auto tables = make_tables(records);
  const Table& table = find(tables, "plan-mine").variants[0];
  ASSERT_EQ(table.rows[1].method, "DeYO");
  EXPECT_TRUE(table.rows[0].cells[0].best);
  EXPECT_TRUE(table.rows[1].cells[0].second);
}

TEST(MethodTable, DeviationsAreOverTrials) {
  std::vector<Record> records;
  for (const std::int64_t trial : {0, 1, 2}) {
    records.push_back(method_run("Tent", "entropy", 800 + 10 * trial, 10, trial));
    records.push_back(method_run("ROID", "soft_likelihood_ratio", 850, 25, trial));
    if (trial > 0) records.push_back(method_run("ETA", "entropy", 900, 11, trial));
  }
  const auto tables = make_tables(records);
  const Table& table = find(tables, "plan-mine").variants[0];
  const Row& tent = row_of(table, {"Tent"});
  EXPECT_NEAR(tent.cells[0].value, 19, 1e-9);
  EXPECT_NEAR(tent.cells[0].deviation.value(), 1, 1e-9);  // of 20, 19, 18
  EXPECT_EQ(tent.cells[0].samples, 3);
  EXPECT_FALSE(tent.cells[column(table, "ms per image")].deviation);
  const Row& eta = row_of(table, {"ETA"});
  EXPECT_EQ(table.caption.find("doing nothing"), std::string::npos) << "nothing does";
  EXPECT_EQ(eta.cells[0].note, "trials 1 and 2 only");
  EXPECT_FALSE(eta.cells[0].best) << "a mean over fewer trials does not compete";
  EXPECT_TRUE(row_of(table, {"ROID"}).cells[0].best);
}

TEST(MethodTable, ItsCaptionSaysWhetherDoingNothingWasCompared) {
  std::vector<Record> records = methods();
  const auto says = [&](const char* words) {
    const std::string caption = find(make_tables(records), "plan-mine").variants[0].caption;
    return caption.find(words) != std::string::npos;
  };
  EXPECT_TRUE(says("the best: of all, doing nothing included, and in"));
  for (Record& record : methods()) {
    if (record.labels.loss.empty()) continue;
    record.labels.trial = 1;
    records.push_back(record);
  }
  EXPECT_TRUE(says("the best: of all, doing nothing left out for want of trials, and in"));
}

TEST(MethodTable, GroupsAndNetworksStandApart) {
  std::vector<Record> records = methods("Mixed");
  for (Record& record : methods("Clean")) records.push_back(record);
  for (Record record : methods("Mixed")) {
    record.labels.backbone = "WRN-16-2";
    records.push_back(record);
  }
  const auto tables = make_tables(records);
  const Table& table = find(tables, "plan-mine").variants[0];
  EXPECT_EQ(table.heads, (std::vector<std::string>{"Group", "Network", "Method"}));
  EXPECT_FALSE(table.sorted_by);
  ASSERT_EQ(table.rows.size(), 15U);
  EXPECT_EQ(table.rows[5].heads, (std::vector<std::string>{"Mixed", "WRN-16-2", "ROID"}));
  for (const std::size_t first : {0U, 5U, 10U}) {
    EXPECT_TRUE(table.rows[first].border);
    EXPECT_TRUE(table.rows[first].cells[0].best);
  }
}

TEST(MethodTable, IsForRowsWithALossOfTheirOwn) {
  std::vector<Record> records = methods();
  const auto of_methods = [&] {
    return find(make_tables(records), "plan-mine").variants[0].of_methods;
  };
  EXPECT_TRUE(of_methods());
  records.push_back(method_run("ETA", "shot", 830, 11));
  EXPECT_FALSE(of_methods()) << "a loss is another dimension of this plan";
  records = methods();
  for (Record& record : records) {
    if (!record.labels.loss.empty()) record.labels.loss = "entropy";
  }
  EXPECT_FALSE(of_methods()) << "one loss";
}

TEST(MethodTable, TheNormModeIsPartOfAMethod) {
  std::vector<Record> records = methods();
  records[0].spec.norm = "source";
  const auto tables = make_tables(records);
  const TableSet& set = find(tables, "plan-mine");
  ASSERT_EQ(set.variants.size(), 1U);
  EXPECT_EQ(set.variants[0].rows.size(), 5U);
  EXPECT_EQ(set.variants[0].norm, "batch, source");
}

TEST(MethodTable, IsPrintedAsAnyOther) {
  const auto tables = make_tables(methods());
  const std::string text = to_markdown({find(tables, "plan-mine")});
  EXPECT_NE(text.find("| Method | Error ↓ | Forget. ↓ | ms per image ↓ | Memory, GB ↓ |"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("| ROID | **15.00** | **1.00** | 0.500 | 2.50 |"), std::string::npos) << text;
}

TEST(TradeoffFigure, DrawsTheLineOfThoseThatNoneBeatsInBoth) {
  std::vector<Record> records = methods();
  records.push_back(method_run("SAR", "entropy", 840, 50));  // slower than ROID, and worse
  const Figure figure = tradeoff_figure(make_tables(records));
  ASSERT_EQ(figure.charts.size(), 1U);
  const auto& spec = figure.charts[0].spec;
  std::map<std::string, bool> on_line;
  std::vector<double> pixels;
  const auto& scale = spec["layer"][0]["encoding"]["y"]["scale"];
  EXPECT_EQ(scale["type"], "log") << "15 % and 50 %";
  const double low = std::log(scale["domain"][0].get<double>());
  const double high = std::log(scale["domain"][1].get<double>());
  for (const auto& value : spec["data"]["values"]) {
    on_line[value["method"]] = value["frontier"];
    const double at = std::log(value["label_at"].get<double>());
    pixels.push_back(spec["height"].get<double>() * (high - at) / (high - low));
  }
  EXPECT_EQ(on_line, (std::map<std::string, bool>{{"Source", true},
                                                  {"Batch statistics", true},
                                                  {"Tent", true},
                                                  {"ETA", true},
                                                  {"ROID", true},
                                                  {"SAR", false}}));
  std::sort(pixels.begin(), pixels.end());
  for (std::size_t i = 1; i < pixels.size(); ++i) EXPECT_GE(pixels[i] - pixels[i - 1], 13.9);
  EXPECT_LE(pixels.back(), spec["height"].get<double>() + 1e-6);
  // Times of two machines are not drawn in one picture: those of the one with most methods are.
  records[0].provenance["gpu"] = "Another GPU";
  const Figure fewer = tradeoff_figure(make_tables(records));
  ASSERT_EQ(fewer.charts.size(), 1U);
  EXPECT_TRUE(fewer.charts[0].label.ends_with("(A GPU), 5 of 6 methods")) << fewer.charts[0].label;
  for (const auto& value : fewer.charts[0].spec["data"]["values"]) {
    EXPECT_NE(value["method"], records[0].labels.row);
  }
  for (std::size_t i = 0; i < 4; ++i) {
    records[i].provenance["gpu"] = std::to_string(i);
  }
  EXPECT_TRUE(tradeoff_figure(make_tables(records)).charts.empty())
      << "of no machine are there three";
}

TEST(SelectorFigure, HoldsMethodsBySelectorsAgainstDoingNothing) {
  std::vector<Record> records = {method_run("Source", "", 500, 2),
                                 method_run("Batch statistics", "", 780, 3)};
  const auto add = [&](const char* group, const char* select, std::int64_t gain) {
    for (const auto& [row, loss, correct] : {std::tuple{"Tent", "entropy", 800},
                                             {"ETA", "entropy", 830},
                                             {"ROID", "soft_likelihood_ratio", 850}}) {
      records.push_back(method_run(row, loss, correct + gain, 10, 0, group));
      records.back().spec.select = select;
    }
  };
  add("Norm layers", "norm_affine", 0);
  EXPECT_TRUE(selector_figure(make_tables(records)).charts.empty()) << "one selector";
  add("All layers", "all", -600);
  add("One layer", "gala:window=20", 5);
  const Figure figure = selector_figure(make_tables(records));
  ASSERT_EQ(figure.charts.size(), 1U);
  const auto& spec = figure.charts[0].spec;
  EXPECT_EQ(spec["encoding"]["x"]["sort"],
            (nlohmann::ordered_json{"Norm layers", "All layers", "One layer"}));
  EXPECT_EQ(spec["encoding"]["y"]["sort"], (nlohmann::ordered_json{"ROID", "ETA", "Tent"}));
  ASSERT_EQ(spec["data"]["values"].size(), 9U);
  for (const auto& value : spec["data"]["values"]) {
    if (value["method"] != "ETA") continue;
    EXPECT_EQ(value["best"], value["selector"] == "One layer");
    if (value["selector"] == "One layer") {
      EXPECT_EQ(value["text"], "16.5");
      EXPECT_NEAR(value["gain"].get<double>(), 5.5, 1e-9) << "batch statistics err by 22 %";
    }
  }
  // A collapse does not take the colour from the others.
  const auto& colour = spec["layer"][0]["encoding"]["color"];
  EXPECT_EQ(colour["scale"]["domain"], (nlohmann::ordered_json{-10.0, 10.0}));
  EXPECT_EQ(colour["title"], "points better than Batch statistics");
  // Two groups with the same selector are no question of selectors.
  add("All layers again", "all", -500);
  EXPECT_TRUE(selector_figure(make_tables(records)).charts.empty());
}

TEST(VisitsFigure, DrawsTheErrorOfEachVisit) {
  std::vector<Record> records = methods("Recurring");
  EXPECT_TRUE(visits_figure(make_tables(records)).charts.empty());
  for (Record& record : records) {
    record.spec.stream = "continual:order=,visits=2";
    const std::int64_t correct = record.domains[0].correct;
    record.domains = {{"fog", 1000, correct},
                      {"snow", 500, correct / 2},
                      {"fog", 1000, correct - 100},
                      {"snow", 500, correct / 2 - 100}};
  }
  const auto tables = make_tables(records);
  const Figure figure = visits_figure(tables);
  ASSERT_EQ(figure.charts.size(), 1U);
  std::map<std::string, std::vector<double>> lines;
  for (const auto& value : figure.charts[0].spec["data"]["values"]) {
    lines[value["method"]].push_back(value["error"]);
  }
  ASSERT_EQ(lines.size(), 5U);
  ASSERT_EQ(lines["ROID"].size(), 2U);
  EXPECT_NEAR(lines["ROID"][0], 15, 1e-9);
  EXPECT_NEAR(lines["ROID"][1], 30, 1e-9);  // 25 and 35
  const Table& table = find(tables, "plan-mine").variants[0];
  EXPECT_NEAR(table.rows[0].cells[0].value, 22.5, 1e-9);
  EXPECT_NEAR(table.rows[0].cells[column(table, "Last visit")].value, 30, 1e-9);
}

TEST(GainFigure, FindsTheSourceModelWhereverASortedTableHasIt) {
  const Figure figure = forgetting_figure(make_tables(methods()));
  ASSERT_EQ(figure.charts.size(), 1U);
  std::map<std::string, double> gains;
  for (const auto& layer : figure.charts[0].spec["data"]["values"]) {
    gains[layer["method"]] = layer["gain"];
  }
  EXPECT_EQ(gains.size(), 4U);
  EXPECT_NEAR(gains["ROID"], 35, 1e-9);
}

}  // namespace
}  // namespace gala::test
