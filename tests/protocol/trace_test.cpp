#include "gala/protocol/trace.h"

#include <gtest/gtest.h>

#include <sstream>

#include "gala/base/error.h"
#include "gala/base/random.h"

namespace gala {
namespace {

TEST(TraceFile, IsThinnedOutUntilItFits) {
  LayerPartition layers;
  for (int l = 0; l < 100; ++l) layers.layers.push_back({fmt::format("layer{}", l), {}, 1});
  Trace trace;
  Random random(1, "trace");
  for (int i = 0; i < 2000; ++i) {
    StepRecord step;
    step.step = i + 1;
    for (int l = 0; l < 100; ++l) step.layers.push_back({random.uniform(), 0, 0, 0});
    trace.add(step);
  }
  const std::string packed = trace.compressed("key", layers);
  EXPECT_LE(packed.size(), Trace::kLargest);
  std::istringstream lines(gunzip(packed));
  std::string line;
  std::getline(lines, line);
  const std::int64_t every = nlohmann::json::parse(line).at("every");
  EXPECT_GE(every, 2);
  std::getline(lines, line);
  std::getline(lines, line);
  EXPECT_EQ(nlohmann::json::parse(line).at("step").get<std::int64_t>(), 1 + every);
  EXPECT_THROW(gunzip("no"), Error);
  EXPECT_THROW(gunzip(packed.substr(0, packed.size() / 2)), Error);
}

TEST(TraceFile, DoesNotUnpackToAnySize) {
  const std::string packed = gzip(std::string(260u << 20, ' '));
  EXPECT_LT(packed.size(), 1u << 20);
  try {
    gunzip(packed);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "unpacks to more than 268435456 bytes");
  }
}

}  // namespace
}  // namespace gala
