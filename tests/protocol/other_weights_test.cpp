#include "gala/protocol/other_weights.h"

#include "gala/model/weights.h"
#include "tests/protocol/runner_case.h"

namespace gala {
namespace {

using test::kAssets;
using OtherWeights = test::RunnerTest;

Record record_of(const ReadyRun& run, const std::string& hash) {
  Record record;
  record.key = run.key;
  record.provenance["weight_hash"] = hash;
  return record;
}

TEST_F(OtherWeights, AreToldWhereTheKeyDoesNotSeeThem) {
  const auto runs = ready(continual(), "[axes]\nseed = [0, 1, 2]\n");
  ASSERT_EQ(runs.size(), 3u);
  const auto model = make_model(runs[0].source.network, 0);
  load_weights(*model, kAssets + "/wrn16_2_cifar10.safetensors");
  const Record same = record_of(runs[0], weight_hash(*model)), other = record_of(runs[1], "ab");
  EXPECT_TRUE(other_weights(runs, {}).empty());
  EXPECT_TRUE(other_weights(runs, {same}).empty());
  const std::vector<std::string> said = other_weights(runs, {same, other});
  ASSERT_EQ(said.size(), 1u);
  EXPECT_CONTAINS(said[0],
                  "1 of the recorded runs were made with other weights than "
                  "wrn16_2_cifar10.safetensors has now");
  // Records from before hashes were kept say nothing, and files that are gone cannot.
  EXPECT_TRUE(other_weights(runs, {record_of(runs[1], "")}).empty());
  auto gone = runs;
  for (ReadyRun& run : gone) run.source.missing = "gone";
  EXPECT_TRUE(other_weights(gone, {other}).empty());
}

TEST_F(OtherWeights, HaveAnotherKeyWhereThePlanAsksForIt) {
  const std::string usual = kAssets + "/wrn16_2_cifar10.safetensors";
  const std::string path = (folder_ / "again.safetensors").string();
  std::string text = continual("contrast", "select = \"none\"\nknown_by = \"weights\"\n");
  text.replace(text.find(usual), usual.size(), path);
  std::filesystem::copy_file(usual, path);
  const auto first = ready(text);
  ASSERT_TRUE(first[0].source.identity.contains("plan"));
  EXPECT_EQ(first[0].key, ready(text)[0].key);
  const auto model = open_source(first[0].source, 0);
  model->parameters().front().value.add_(1);
  save_weights(*model, path, {.metadata = read_weight_metadata(usual)});
  const auto second = ready(text);
  EXPECT_EQ(first[0].source.identity["plan"], second[0].source.identity["plan"]);
  EXPECT_NE(first[0].key, second[0].key);
  EXPECT_TRUE(other_weights(second, {record_of(second[0], "ab")}).empty());
}

TEST_F(OtherWeights, OfAFileWithoutATrainingHaveAnotherKey) {
  auto model = make_model(Spec::parse("wide_resnet:depth=10,width=1,classes=10"), 0);
  const std::string path = (folder_ / "plain.safetensors").string();
  std::string text = continual("contrast", "select = \"none\"\n");
  const std::string usual = kAssets + "/wrn16_2_cifar10.safetensors";
  text.replace(text.find(usual), usual.size(), path);
  save_weights(*model, path);
  const auto first = ready(text);
  model->parameters().front().value.add_(1);
  save_weights(*model, path);
  const auto second = ready(text);
  EXPECT_NE(first[0].key, second[0].key);
  EXPECT_TRUE(other_weights(second, {record_of(second[0], "ab")}).empty());
}

}  // namespace
}  // namespace gala
