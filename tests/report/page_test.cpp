#include "gala/report/page.h"

#include <gtest/gtest.h>

#include "gala/base/error.h"
#include "gala/protocol/trace.h"
#include "gala/report/page_assets.h"
#include "gala/report/printers.h"
#include "tests/report/made_up.h"

namespace gala::test {
namespace {

const char kHostile[] = "</script><img src=x onerror='alert(1)'>\"&";

std::vector<Record> hostile_records() {
  std::vector<Record> records;
  for (const char* plan : {"table1", kHostile}) {
    Record record = made_up({.plan = plan,
                             .row = kHostile,
                             .loss = kHostile,
                             .environment = kHostile,
                             .hyper = {{kHostile, kHostile}},
                             .dataset = kHostile,
                             .backbone = kHostile,
                             .group = kHostile},
                            500);
    record.key = std::string(kHostile) + plan;
    record.spec.norm = record.spec.select = record.spec.optimizer = kHostile;
    record.provenance = {{"device", kHostile}, {kHostile, kHostile}};
    records.push_back(record);
  }
  return records;
}

std::string page_of(const std::vector<Record>& records) {
  std::vector<TableSet> tables = make_tables(records);
  PageContent content{.title = kHostile,
                      .lead = kHostile,
                      .facts = describe_records(records),
                      .verdicts = make_verdicts(tables),
                      .tables = tables,
                      .figures = store_figures(records, tables),
                      .records = &records,
                      .cosines = {},
                      .with_summary = true,
                      .notes = {kHostile}};
  return make_page(content);
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

TEST(Page, HostileTextsStayText) {
  if (!page_assets_problem().empty()) GTEST_SKIP() << page_assets_problem();
  const std::string page = page_of(hostile_records());
  EXPECT_EQ(count(page, "<img"), 0U);
  EXPECT_EQ(count(page, "onerror='"), 0U);
  EXPECT_EQ(count(page, "<script"), 2U);  // the data and the page's own
  EXPECT_EQ(count(page, "</script"), 2U);
  EXPECT_NE(page.find("&lt;/script&gt;&lt;img"), std::string::npos);
}

TEST(Page, AsksNothingOfOtherMachines) {
  if (!page_assets_problem().empty()) GTEST_SKIP() << page_assets_problem();
  const std::string page = page_of(hostile_records());
  EXPECT_NE(page.find("default-src 'none'; script-src 'sha256-"), std::string::npos);
  const std::string markup = page.substr(0, page.rfind("<script>"));
  for (const char* part : {"src=\"http", "href=\"http", "url(", "@import", "<link", "<iframe"}) {
    EXPECT_EQ(count(markup, part), 0U) << part;
  }
}

TEST(Page, WhatWasRunStandsBeforeWhatWasNot) {
  if (!page_assets_problem().empty()) GTEST_SKIP() << page_assets_problem();
  const std::string page = page_of({made_up({.plan = "mine", .row = "a"}, 700)});
  EXPECT_LT(page.find("<h3>Plan mine</h3>"), page.find("<h3>Not run</h3>"));
  EXPECT_NE(page.find("<details><summary>Table 1: DomainBed</summary>"), std::string::npos);
  // Nothing to judge: no verdicts.
  EXPECT_EQ(count(page, "class=\"verdicts\""), 0U);
  EXPECT_EQ(count(page, "None of the paper’s benchmarks"), 1U);
}

TEST(Page, SaysWhatIsUnderlined) {
  if (!page_assets_problem().empty()) GTEST_SKIP() << page_assets_problem();
  std::vector<Record> records;
  for (const auto& [row, right] : {std::pair{"a", 700}, {"b", 600}, {"c", 500}}) {
    records.push_back(made_up({.plan = "mine", .row = row}, right));
  }
  const std::string three = page_of(records);
  EXPECT_GT(count(three, "class=\"num second\""), 0U);
  EXPECT_NE(three.find("The second best is underlined."), std::string::npos);
  records.pop_back();
  const std::string two = page_of(records);
  EXPECT_EQ(count(two, "class=\"num second\""), 0U);
  EXPECT_EQ(two.find("underlined."), std::string::npos);
}

TEST(Page, OnlyAChoiceByCosineHasGapAndThreshold) {
  std::vector<Record> records = {made_up({}, 1), made_up({.row = "AutoSNR"}, 2)};
  records[0].spec.select = "gala:threshold=0.75,window=20";
  records[1].spec.select = "auto_snr:threshold=0.5";
  for (Record& record : records) record.gap.steps = record.gap.zero = 9;
  PageContent content{};
  content.records = &records;
  nlohmann::ordered_json data;
  set_series(data, content, 1'000'000);
  EXPECT_EQ(data["details"]["0"]["gap"]["steps"], 9);
  EXPECT_EQ(data["details"]["0"]["threshold"], 0.75);
  EXPECT_EQ(data["details"]["1"]["gap"]["steps"], 0);
  EXPECT_FALSE(data["details"]["1"].contains("threshold"));
}

TEST(Page, RunsAreColumnsOfSharedValues) {
  std::vector<Record> records;
  for (const char* row : {"GALA", "ERM", "GALA", "GALA"})
    records.push_back(made_up({.row = row}, 7));
  records[1].held_out.reset();
  const nlohmann::ordered_json runs = page_runs(records);
  EXPECT_EQ(runs["count"], 4);
  const auto column = [&](const nlohmann::ordered_json& at) -> nlohmann::ordered_json {
    for (const auto& one : runs["columns"]) {
      if (one["at"] == at) return one;
    }
    return {};
  };
  const auto rows = column({"labels", "row"});
  EXPECT_EQ(rows["values"], nlohmann::ordered_json({"GALA", "ERM"}));
  EXPECT_EQ(rows["of"], nlohmann::ordered_json({0, 1, 0, 0}));
  EXPECT_EQ(column({"domains", "correct"})["values"], nlohmann::ordered_json({{7}}));
  EXPECT_EQ(column({"held_out", "sets"})["of"], nlohmann::ordered_json({0, -1, 0, 0}));
}

TEST(Page, WithoutTheScriptTheReasonIsGiven) {
  if (page_assets_problem().empty()) GTEST_SKIP() << "the script is there";
  try {
    page_of({});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("--format md"), std::string::npos);
  }
}

TEST(Page, SeriesAreLeftOutWhenThereIsNoRoom) {
  const std::vector<Record> records = {made_up({}, 1), made_up({.row = "ERM", .loss = ""}, 2)};
  PageContent content{};
  content.records = &records;
  nlohmann::ordered_json data = page_data(content, {});
  EXPECT_EQ(data["runs"]["count"], 2);
  set_series(data, content, 1'000'000);
  EXPECT_EQ(data["details"].size(), 2U);
  set_series(data, content, 10);
  EXPECT_EQ(data["details"].size(), 0U);
}

TEST(Page, Base64IsThatOfTheStandard) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(percent_encoded("a b/é<"), "a%20b%2F%C3%A9%3C");
}

}  // namespace
}  // namespace gala::test
