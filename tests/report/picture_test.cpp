#include "gala/report/picture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/report/made_up.h"

namespace gala::test {
namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

/// The d of the one path with these words in it; empty where there is none.
std::string path_with(const std::string& svg, const std::string& words) {
  const std::string begin = "<path d=\"";
  for (std::size_t at = svg.find(begin); at != std::string::npos; at = svg.find(begin, at + 1)) {
    const std::size_t from = at + begin.size(), quote = svg.find('"', from);
    const std::size_t end = svg.find('>', quote);
    if (svg.substr(quote, end - quote).find(words) != std::string::npos) {
      return svg.substr(from, quote - from);
    }
  }
  return "";
}

TEST(Picture, HasADotForEveryStepAtWhichOneLayerMoved) {
  Record run = sample_record();
  run.steps = 10;
  run.choices = {{Record::kSeveral, 1}, {0, 3}, {1, 1}, {0, 2}, {Record::kNone, 2},
                 {Record::kRefused, 1}};
  const std::string svg = to_svg({.title = "A stream", .mover = "GALA", .choices = &run});
  // Ten steps over 660 units: three steps in a row are a stroke over two of them.
  const std::string dots = path_with(svg, "stroke-linecap=\"round\"");
  EXPECT_EQ(count(dots, "M"), 3U) << dots;
  EXPECT_EQ(count(dots, "h132.0"), 1U) << dots;
  EXPECT_EQ(count(dots, "h0.0"), 1U) << dots;
  EXPECT_EQ(count(dots, "h66.0"), 1U) << dots;
  for (const char* words : {"one layer", "several layers", "none", "refused step"}) {
    EXPECT_EQ(count(svg, std::string(">") + words + "<"), 1U) << words;
  }
  EXPECT_EQ(count(svg, "error in %"), 0U) << "no line was asked for";
}

TEST(Picture, ErrorsStandAtTheirHeight) {
  Record run = sample_record();
  run.over_time = {{10, 10, 10, 10}, {10, 5, 5, 0}, {{0, "a"}, {2, "b"}}};
  const std::string svg = to_svg({.title = "A stream", .lines = {{"Source", "#123456", &run}}});
  // 0, 50, 50 and 100 % at the middles of four batches; 190 units are 100 %.
  const std::string line = path_with(svg, "stroke=\"#123456\"");
  double x = 0, y = 0;
  char letter = 0;
  std::vector<std::pair<double, double>> points;
  for (std::istringstream words(line); words >> letter >> x >> y;) points.emplace_back(x, y);
  ASSERT_EQ(points.size(), 4U) << line;
  for (std::size_t i = 0; i < points.size(); ++i) {
    EXPECT_NEAR(points[i].first, 58 + 660 * (static_cast<double>(i) + 0.5) / 4, 0.06);
  }
  EXPECT_NEAR(points[0].second - points[1].second, 95, 0.11);
  EXPECT_NEAR(points[1].second - points[2].second, 0, 0.11);
  EXPECT_NEAR(points[2].second - points[3].second, 95, 0.11);
  // The mean is that of the domains, as in every table.
  EXPECT_EQ(count(svg, fmt::format(">Source {:.1f}<", 100 * run.error())), 1U) << svg;
}

TEST(Picture, NamesDoNotTouch) {
  std::vector<Record> runs(6, sample_record());
  Picture picture{.title = "A stream"};
  for (const Record& run : runs) picture.lines.push_back({"Name", "#123456", &run});
  const std::string svg = to_svg(picture);
  std::vector<double> heights;
  for (std::size_t at = svg.find(">Name "); at != std::string::npos;
       at = svg.find(">Name ", at + 1)) {
    const std::size_t y = svg.find(" y=\"", svg.rfind('<', at));
    ASSERT_LT(y, at);
    heights.push_back(std::stod(svg.substr(y + 4)));
  }
  ASSERT_EQ(heights.size(), 6U);
  std::sort(heights.begin(), heights.end());
  for (std::size_t i = 1; i < heights.size(); ++i) EXPECT_GE(heights[i] - heights[i - 1], 14.8);
}

TEST(Picture, HostileTextsStayText) {
  const char hostile[] = "</text><script>alert(1)</script>\"&";
  Record run = sample_record();
  run.over_time.borders = {{0, hostile}, {2, "b"}};
  const std::string svg = to_svg(
      {.title = hostile, .lines = {{hostile, "#123456", &run}}, .mover = hostile, .choices = &run});
  EXPECT_EQ(count(svg, "<script"), 0U);
  EXPECT_EQ(count(svg, "</text>&quot;"), 0U);
  EXPECT_GE(count(svg, "&lt;script&gt;"), 4U);
}

TEST(Picture, ARunWithoutAnswersOrStepsLeavesItsPartOut) {
  Record run = sample_record();
  run.over_time = {};
  run.steps = 0;
  run.choices.clear();
  const std::string svg =
      to_svg({.title = "A stream", .lines = {{"Name", "#123456", &run}}, .choices = &run});
  EXPECT_EQ(count(svg, "<path"), 0U) << svg;
}

}  // namespace
}  // namespace gala::test
