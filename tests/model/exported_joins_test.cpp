// Which nodes of an exported network are done in one pass; that the answers stay PyTorch's is tested with every family
// (exported_test.cpp).
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "gala/model/exported/graph.h"

namespace gala::exported {
namespace {

namespace fs = std::filesystem;

class Joins : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(kFolder / "cases.json")) {
      GTEST_SKIP() << "the files are made by a Python with torch, and there is none";
    }
  }

  /// How many nodes fit.
  template <class Fits>
  static std::int64_t count(const std::string& network, const Fits& fits) {
    const Graph graph = read_graph(Archive((kFolder / network / "net.pt2").string()));
    return std::count_if(graph.nodes.begin(), graph.nodes.end(), fits);
  }

  static inline const fs::path kFolder = fs::path(GALA_TEST_BUILD_DIR) / "fixtures" / "exported";
};

TEST_F(Joins, EveryBlockOfAResNetEndsInOnePass) {
  EXPECT_EQ(count("resnet", [](const Node& node) { return node.adds && node.relu; }), 5);
  EXPECT_EQ(count("resnet", [](const Node& node) { return node.adds && !node.relu; }), 0);
  EXPECT_EQ(count("resnet", [](const Node& node) { return node.kind == Node::Kind::kPool; }), 1);
  // 13 norms: of the 8 that nothing is added to, the stem's and each block's first have a relu behind them.
  EXPECT_EQ(count("resnet", [](const Node& node) { return node.kind == Node::Kind::kNorm; }), 13);
  EXPECT_EQ(count("resnet", [](const Node& node) { return node.relu && !node.adds; }), 6);
}

TEST_F(Joins, OnlyWhereNobodyElseSees) {
  EXPECT_EQ(count("shortcuts", [](const Node& node) { return node.adds; }), 3);
  EXPECT_EQ(count("shortcuts", [](const Node& node) { return node.adds && node.relu; }), 2);
  EXPECT_EQ(count("shortcuts", [](const Node& node) { return node.kind == Node::Kind::kNorm; }), 9);
  EXPECT_EQ(count("shortcuts", [](const Node& node) { return node.kind == Node::Kind::kPool; }), 1);
}

TEST_F(Joins, OfMobileNetsShortcutsNoneHasARelu) {
  EXPECT_EQ(count("mobilenet", [](const Node& node) { return node.adds; }), 2);
  EXPECT_EQ(count("mobilenet", [](const Node& node) { return node.adds && node.relu; }), 0);
}

}  // namespace
}  // namespace gala::exported
