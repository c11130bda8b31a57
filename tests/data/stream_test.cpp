#include "gala/data/stream.h"

#include <algorithm>
#include <map>
#include <set>

#include "gala/data/class_check.h"
#include "support.h"

namespace gala {
namespace {

using test::counting_pictures;
using test::message_of;

DataSource corruptions(const std::vector<std::string>& families, std::int64_t count) {
  DataSource source;
  for (const std::string& family : families) {
    for (int severity = 1; severity <= 5; ++severity) {
      source.domains.push_back(
          {fmt::format("{}_{}", family, severity), counting_pictures(count, 3), family, severity});
    }
  }
  return source;
}

DataSource environments(std::int64_t count) {
  return {{}, {{"art", counting_pictures(count, 4)}, {"photo", counting_pictures(count + 1, 4)}}};
}

std::vector<std::string> segment_names(const Stream& stream) {
  std::vector<std::string> names;
  for (const auto& segment : stream.segments) names.push_back(segment.name);
  return names;
}

/// Every picture of every domain the stream visits comes exactly once a segment.
void expect_each_once(const Stream& stream) {
  std::int64_t begin = 0;
  for (const auto& segment : stream.segments) {
    EXPECT_EQ(segment.begin, begin);
    begin += segment.size;
    std::set<std::pair<int, int>> seen;
    for (std::int64_t i = segment.begin; i < begin; ++i) {
      const auto& item = stream.items[static_cast<std::size_t>(i)];
      EXPECT_TRUE(seen.emplace(item.domain, item.index).second);
    }
  }
  EXPECT_EQ(begin, stream.size());
}

TEST(Stream, SingleIsTheFileOrderUnlessShuffled) {
  const DataSource source{{}, {{"only", counting_pictures(100, 10)}}};
  const Stream file = make_stream(Spec::parse("single"), source, 1);
  for (std::int32_t i = 0; i < 100; ++i) {
    EXPECT_EQ(file.items[static_cast<std::size_t>(i)], (StreamItem{0, i}));
  }
  const Stream shuffled = make_stream(Spec::parse("single:order=shuffled"), source, 1);
  expect_each_once(shuffled);
  EXPECT_NE(shuffled.items, file.items);
  EXPECT_EQ(make_stream(Spec::parse("single:order=shuffled"), source, 1).items, shuffled.items);
  EXPECT_NE(make_stream(Spec::parse("single:order=shuffled"), source, 2).items, shuffled.items);
  EXPECT_EQ(file.spec.to_string(), "single:order=file,last=keep");
}

TEST(Stream, SingleRefusesSeveralDomains) {
  EXPECT_CONTAINS(
      message_of<ConfigError>([] { make_stream(Spec::parse("single"), environments(3), 0); }),
      "takes one domain, the data has 2: art, photo");
}

TEST(Stream, BatchesKeepOrDropTheLast) {
  const DataSource source{{}, {{"only", counting_pictures(10, 2)}}};
  EXPECT_EQ(make_stream(Spec::parse("single"), source, 0).batches(4),
            (std::vector<BatchSpan>{{0, 4, 0}, {4, 4, 0}, {8, 2, 0}}));
  const Stream dropping = make_stream(Spec::parse("single:last=drop"), source, 0);
  EXPECT_EQ(dropping.batches(4), (std::vector<BatchSpan>{{0, 4, 0}, {4, 4, 0}}));
  EXPECT_EQ(dropping.batches(1).size(), 10u);
  EXPECT_CONTAINS(message_of<ConfigError>([&] { dropping.batches(11); }), "no batch of 11");
  EXPECT_CONTAINS(message_of<ConfigError>([&] { dropping.batches(0); }), "cannot be 0");
}

TEST(Stream, BatchesCrossBordersOnlyWhenAllowed) {
  const DataSource source = environments(5);
  const Stream cut = make_stream(Spec::parse("continual"), source, 0);
  EXPECT_EQ(cut.batches(4), (std::vector<BatchSpan>{{0, 4, 0}, {4, 1, 0}, {5, 4, 1}, {9, 2, 1}}));
  const Stream crossing = make_stream(Spec::parse("continual:borders=cross"), source, 0);
  EXPECT_EQ(crossing.batches(4), (std::vector<BatchSpan>{{0, 4, 0}, {4, 4, 0}, {8, 3, 1}}));
  const Stream dropping = make_stream(Spec::parse("continual:last=drop,reset=yes"), source, 0);
  EXPECT_EQ(dropping.batches(4), (std::vector<BatchSpan>{{0, 4, 0}, {5, 4, 1}}));
  EXPECT_TRUE(dropping.reset_at_borders);
}

TEST(Stream, ContinualFollowsAnyList) {
  const DataSource source = environments(3);
  EXPECT_EQ(segment_names(make_stream(Spec::parse("continual"), source, 0)),
            (std::vector<std::string>{"art", "photo"}));
  EXPECT_EQ(
      segment_names(make_stream(Spec::parse("continual:order=\"photo, art,photo\""), source, 0)),
      (std::vector<std::string>{"photo", "art", "photo"}));
  EXPECT_CONTAINS(
      message_of<ConfigError>([&] { make_stream(Spec::parse("continual:order=phot"), source, 0); }),
      "did you mean \"photo\"");
  EXPECT_CONTAINS(message_of<ConfigError>([] {
                    make_stream(Spec::parse("continual:order=fog"), corruptions({"fog"}, 2), 0);
                  }),
                  "at 5 severities");
}

/// The items of a segment.
std::vector<StreamItem> items_of(const Stream& stream, std::size_t segment) {
  const StreamSegment& part = stream.segments.at(segment);
  const auto begin = stream.items.begin() + part.begin;
  return {begin, begin + part.size};
}

TEST(Stream, ComesAgainAsOftenAsItIsToldTo) {
  const DataSource source = environments(60);
  const Stream once = make_stream(Spec::parse("continual:samples=shuffled"), source, 3);
  const Stream recurring =
      make_stream(Spec::parse("continual:samples=shuffled,visits=3"), source, 3);
  EXPECT_EQ(segment_names(recurring),
            (std::vector<std::string>{"art (visit 1)", "photo (visit 1)", "art (visit 2)",
                                      "photo (visit 2)", "art (visit 3)", "photo (visit 3)"}));
  expect_each_once(recurring);
  EXPECT_EQ(recurring.size(), 3 * once.size());
  // The first visit is the stream that comes once; later ones are drawn anew.
  EXPECT_EQ(items_of(recurring, 1), items_of(once, 1));
  EXPECT_NE(items_of(recurring, 2), items_of(recurring, 0));
  EXPECT_NE(items_of(recurring, 4), items_of(recurring, 2));
  const Stream in_file_order = make_stream(Spec::parse("continual:visits=2"), source, 3);
  EXPECT_EQ(items_of(in_file_order, 2), items_of(in_file_order, 0));
  const Stream ordered =
      make_stream(Spec::parse("continual:order=\"photo,art\",visits=2"), source, 0);
  EXPECT_EQ(segment_names(ordered), (std::vector<std::string>{"photo (visit 1)", "art (visit 1)",
                                                              "photo (visit 2)", "art (visit 2)"}));
}

TEST(Stream, DrawsItsSlotsAnewAtEachVisit) {
  const DataSource source = environments(400);
  const Stream stream =
      make_stream(Spec::parse("correlated:by=dirichlet,slots=20,visits=2"), source, 1);
  expect_each_once(stream);
  ASSERT_EQ(stream.segments.size(), 4u);
  EXPECT_EQ(stream.segments[3].name, "photo (visit 2)");
  EXPECT_NE(items_of(stream, 2), items_of(stream, 0));
  EXPECT_EQ(items_of(stream, 0),
            items_of(make_stream(Spec::parse("correlated:by=dirichlet,slots=20"), source, 1), 0));
}

TEST(Stream, NamesVisitsOnlyWhereThereAreSeveral) {
  const DataSource source = environments(3);
  const auto spec = [&](const char* text) {
    return make_stream(Spec::parse(text), source, 0).spec.to_string();
  };
  // As records had it before there were visits.
  EXPECT_EQ(spec("continual"), "continual:order=\"\",samples=file,borders=cut,last=keep,reset=no");
  EXPECT_EQ(spec("continual:visits=1"), spec("continual"));
  EXPECT_EQ(spec("continual:visits=20"), spec("continual") + ",visits=20");
  EXPECT_EQ(spec("correlated:visits=1"),
            "correlated:by=sorted,delta=0.1,slots=100,order=\"\",borders=cut,last=keep,reset=no");
  for (const char* text : {"continual:visits=0", "correlated:visits=1001"}) {
    EXPECT_CONTAINS(message_of<ConfigError>([&] { spec(text); }), "expected 1 to 1000");
  }
}

TEST(Stream, GradualSwellsAndEbbs) {
  const DataSource source = corruptions({"fog", "snow"}, 2);
  const Stream cotta = make_stream(Spec::parse("gradual"), source, 0);
  EXPECT_EQ(segment_names(cotta),
            (std::vector<std::string>{"fog_5", "fog_4", "fog_3", "fog_2", "fog_1", "snow_1",
                                      "snow_2", "snow_3", "snow_4", "snow_5", "snow_4", "snow_3",
                                      "snow_2", "snow_1"}));
  expect_each_once(cotta);
  const Stream symmetric = make_stream(Spec::parse("gradual:form=symmetric,order=snow"), source, 0);
  EXPECT_EQ(segment_names(symmetric),
            (std::vector<std::string>{"snow_1", "snow_2", "snow_3", "snow_4", "snow_5", "snow_4",
                                      "snow_3", "snow_2", "snow_1"}));
  EXPECT_CONTAINS(
      message_of<ConfigError>([] { make_stream(Spec::parse("gradual"), environments(2), 0); }),
      "no severities");
}

TEST(Stream, MixedHoldsEverythingOnce) {
  const Stream stream = make_stream(Spec::parse("mixed"), environments(200), 5);
  EXPECT_EQ(stream.size(), 401);
  EXPECT_EQ(segment_names(stream), std::vector<std::string>{"mixed"});
  expect_each_once(stream);
  const auto early = std::count_if(stream.items.begin(), stream.items.begin() + 100,
                                   [](const StreamItem& item) { return item.domain == 0; });
  EXPECT_GT(early, 25);
  EXPECT_LT(early, 75);
}

TEST(Stream, CorrelatedSortedHasOneRunAClass) {
  const Stream stream = make_stream(Spec::parse("correlated"), environments(50), 0);
  expect_each_once(stream);
  for (const auto& segment : stream.segments) {
    for (std::int64_t i = segment.begin + 1; i < segment.begin + segment.size; ++i) {
      EXPECT_LE(stream.label(i - 1), stream.label(i));
    }
  }
}

/// How often neighbours have the same class.
double agreement(const Stream& stream) {
  std::int64_t equal = 0;
  for (std::int64_t i = 1; i < stream.size(); ++i) equal += stream.label(i) == stream.label(i - 1);
  return static_cast<double>(equal) / static_cast<double>(stream.size() - 1);
}

TEST(Stream, CorrelatedDirichletIsLessSortedTheLargerDeltaIs) {
  const DataSource source{{}, {{"only", counting_pictures(5000, 10)}}};
  const auto at = [&](double delta) {
    const Stream stream = make_stream(
        Spec::parse(fmt::format("correlated:by=dirichlet,delta={},slots=50", delta)), source, 3);
    expect_each_once(stream);
    // How many of a window's pictures share its most frequent class.
    double total = 0;
    for (std::int64_t begin = 0; begin < 5000; begin += 100) {
      std::map<std::int64_t, int> counts;
      for (std::int64_t i = begin; i < begin + 100; ++i) ++counts[stream.label(i)];
      int most = 0;
      for (const auto& [label, count] : counts) most = std::max(most, count);
      total += most;
    }
    return total / 5000;
  };
  const double tight = at(0.001), loose = at(1), even = at(1000);
  EXPECT_GT(tight, 0.8);
  EXPECT_GT(tight, loose);
  EXPECT_GT(loose, even);
  // An even spread puts 10 pictures of each of 10 classes into each slot of 100.
  EXPECT_LT(even, 0.15);
  EXPECT_LT(agreement(make_stream(Spec::parse("single:order=shuffled"), source, 1)), 0.15);
}

TEST(Stream, CorrelatedNeedsLabels) {
  const DataSource source{{}, {{"bare", counting_pictures(5, 0)}}};
  EXPECT_CONTAINS(
      message_of<ConfigError>([&] { make_stream(Spec::parse("correlated"), source, 0); }),
      "domain bare has no labels");
}

/// `counts[c]` pictures of class c, one class after the other.
DataSource class_after_class(const std::vector<std::int64_t>& counts) {
  std::int64_t total = 0;
  for (const std::int64_t count : counts) total += count;
  const auto classes = static_cast<std::int64_t>(counts.size());
  const auto all = counting_pictures(total * classes, classes);
  std::vector<std::int64_t> order;
  for (std::size_t c = 0; c < counts.size(); ++c) {
    std::int64_t left = counts[c];
    for (std::int64_t i = 0; left > 0; ++i) {
      if (all->label(i) != static_cast<std::int64_t>(c)) continue;
      order.push_back(i);
      --left;
    }
  }
  return {{}, {{"only", std::make_shared<Subset>(all, order)}}};
}

TEST(Stream, ThatBringsClassAfterClassIsWarnedOfUnlessItWasAskedFor) {
  const auto warning = [](const std::string& spec, const DataSource& source) {
    const auto said = class_warnings(source, make_stream(Spec::parse(spec), source, 1), {});
    return said.empty() ? "" : said.at(0);
  };
  const DataSource sorted = class_after_class({30, 20, 50});
  EXPECT_CONTAINS(warning("single", sorted), "the stream single:order=shuffled mixes them");
  EXPECT_CONTAINS(warning("continual", sorted), "the stream continual:samples=shuffled mixes them");
  EXPECT_EQ(warning("single:order=shuffled", sorted), "");
  EXPECT_EQ(warning("continual:samples=shuffled", sorted), "");
  EXPECT_EQ(warning("correlated", sorted), "");
  // Neighbours are alike here too, because hardly anything else is there.
  EXPECT_EQ(warning("single:order=shuffled", class_after_class({95, 5})), "");
  EXPECT_EQ(warning("single", class_after_class({100})), "");
  EXPECT_EQ(warning("single", {{}, {{"only", counting_pictures(100, 10)}}}), "");
}

}  // namespace
}  // namespace gala
