#include "gala/model/partition.h"

#include <gtest/gtest.h>

#include <numeric>

#include "gala/base/error.h"

namespace gala {
namespace {

std::unique_ptr<Model> make(const char* spec) {
  return make_model(Spec::parse(spec));
}

LayerPartition layers_of(Model& model, Granularity granularity,
                         const ParameterFilter& filter = {}) {
  return make_partition(adapted_parameters(model, filter, granularity), granularity);
}

std::vector<std::string> names_of(const LayerPartition& partition) {
  std::vector<std::string> names;
  for (const Layer& layer : partition.layers) names.push_back(layer.name);
  return names;
}

std::string message_of(Model& model, const ParameterFilter& filter) {
  try {
    adapted_parameters(model, filter, Granularity::kModule);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

struct Counts {
  const char* spec;
  std::size_t modules, tensors, blocks;
  std::int64_t parameters;  ///< as PyTorch counts them
};

class PartitionOf : public testing::TestWithParam<Counts> {};

TEST_P(PartitionOf, ANetworkHasTheKnownNumberOfLayers) {
  const auto& [spec, modules, tensors, blocks, parameters] = GetParam();
  const auto model = make(spec);
  EXPECT_EQ(layers_of(*model, Granularity::kModule).size(), modules);
  EXPECT_EQ(layers_of(*model, Granularity::kTensor).size(), tensors);
  EXPECT_EQ(layers_of(*model, Granularity::kBlock).size(), blocks);
  std::int64_t count = 0;
  for (const Layer& layer : layers_of(*model, Granularity::kModule).layers) count += layer.count;
  EXPECT_EQ(count, parameters);
}

INSTANTIATE_TEST_SUITE_P(Zoo, PartitionOf,
                         testing::Values(Counts{"wide_resnet", 54, 80, 3, 36479194},
                                         Counts{"resnext29", 63, 95, 3, 6900132},
                                         Counts{"resnet18", 41, 62, 4, 11689512},
                                         Counts{"resnet34", 73, 110, 4, 21797672},
                                         Counts{"resnet50", 107, 161, 4, 25557032}));

TEST(Partition, HoldsEveryTensorOnceAndInOrder) {
  const auto model = make("wide_resnet:depth=10,width=1");
  for (const Granularity granularity :
       {Granularity::kTensor, Granularity::kModule, Granularity::kBlock}) {
    const auto parameters = adapted_parameters(*model, {}, granularity);
    const LayerPartition partition = make_partition(parameters, granularity);
    std::vector<std::size_t> all;
    for (const Layer& layer : partition.layers) {
      std::int64_t count = 0;
      for (const std::size_t tensor : layer.tensors) {
        all.push_back(tensor);
        count += parameters[tensor]->value.numel();
      }
      EXPECT_EQ(layer.count, count) << layer.name;
    }
    std::vector<std::size_t> expected(parameters.size());
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(all, expected);
  }
}

TEST(Partition, NamesLayersAfterTensorsModulesAndBlocks) {
  const auto model = make("wide_resnet:depth=10,width=1");
  const auto tensors = names_of(layers_of(*model, Granularity::kTensor));
  const auto modules = names_of(layers_of(*model, Granularity::kModule));
  EXPECT_EQ(std::vector(tensors.begin(), tensors.begin() + 4),
            (std::vector<std::string>{"conv1.weight", "block1.layer.0.bn1.weight",
                                      "block1.layer.0.bn1.bias", "block1.layer.0.conv1.weight"}));
  EXPECT_EQ(std::vector(modules.begin(), modules.begin() + 3),
            (std::vector<std::string>{"conv1", "block1.layer.0.bn1", "block1.layer.0.conv1"}));
  EXPECT_EQ(std::vector(modules.end() - 3, modules.end()),
            (std::vector<std::string>{"block3.layer.0.convShortcut", "bn1", "fc"}));
  EXPECT_EQ(names_of(layers_of(*model, Granularity::kBlock)),
            (std::vector<std::string>{"block1", "block2", "block3"}));
}

TEST(Partition, PutsTheStemIntoTheFirstBlockAndTheHeadIntoNone) {
  const auto model = make("resnet18");
  const auto parameters = adapted_parameters(*model, {}, Granularity::kBlock);
  const LayerPartition partition = make_partition(parameters, Granularity::kBlock);
  EXPECT_EQ(parameters[partition[0].tensors[0]]->name, "conv1.weight");
  EXPECT_EQ(parameters[partition[0].tensors[1]]->name, "bn1.weight");
  EXPECT_EQ(parameters[partition[3].tensors.back()]->name, "layer4.1.bn2.bias");
  EXPECT_EQ(parameters.size(), 60u);
  const auto with_head = adapted_parameters(*model, {}, Granularity::kTensor);
  EXPECT_THROW(make_partition(with_head, Granularity::kBlock), ConfigError);
}

TEST(Filter, LeavesOutHeadAndNorms) {
  const auto model = make("resnet18");
  const auto count = [&](const ParameterFilter& filter) {
    return adapted_parameters(*model, filter, Granularity::kTensor).size();
  };
  EXPECT_EQ(count({}), 62u);
  EXPECT_EQ(count({.head = false}), 60u);
  EXPECT_EQ(count({.norms = false}), 22u);
  EXPECT_EQ(count({.head = false, .norms = false}), 20u);
  EXPECT_EQ(count({.others = false}), 40u);
}

TEST(Filter, TakesPatternsOnTensorsAndModules) {
  const auto model = make("resnet18");
  const auto count = [&](const ParameterFilter& filter) {
    return adapted_parameters(*model, filter, Granularity::kTensor).size();
  };
  EXPECT_EQ(count({.include = {"layer4.*"}}), 15u);
  EXPECT_EQ(count({.include = {"layer4.*", "fc"}}), 17u);
  EXPECT_EQ(count({.include = {"layer4.*"}, .exclude = {"*.bias"}}), 10u);
  EXPECT_EQ(count({.exclude = {"layer?.*"}}), 5u);
  EXPECT_EQ(count({.include = {"conv1"}}), 1u);
}

TEST(Filter, NamesTheNearestForAPatternThatMatchesNothing) {
  const auto model = make("resnet18");
  const std::string message = message_of(*model, {.include = {"layr4.*"}});
  EXPECT_EQ(message.find("the pattern \"layr4.*\" matches no parameter of resnet18"), 0u)
      << message;
  EXPECT_NE(message.find("layer4"), std::string::npos) << message;
  EXPECT_NE(message_of(*model, {.exclude = {"classifier"}}).find("matches no parameter"),
            std::string::npos);
  EXPECT_NE(message_of(*model, {.exclude = {""}}).find("nearest names: "), std::string::npos);
}

TEST(Filter, RefusesToLeaveNothing) {
  const auto model = make("resnet18");
  EXPECT_EQ(message_of(*model, {.head = false, .include = {"fc.*"}}),
            "no parameter of resnet18 is left to adapt (partition module, head no, norms yes, "
            "others yes, include [fc.*], exclude [])");
  EXPECT_THROW(adapted_parameters(*model, {.include = {"fc"}}, Granularity::kBlock), ConfigError);
}

TEST(Pattern, MatchesStarsAndQuestionMarks) {
  struct Example {
    const char* name;
    const char* pattern;
    bool fits;
  };
  for (const auto& [name, pattern, expected] :
       {Example{"layer1.0.conv1.weight", "layer1.0.conv1.weight", true},
        Example{"layer1.0.conv1.weight", "layer1", false}, Example{"abc", "*", true},
        Example{"", "*", true}, Example{"", "", true}, Example{"a", "", false},
        Example{"abc", "a?c", true}, Example{"abc", "a?", false}, Example{"ac", "a?c", false},
        Example{"abcbc", "a*bc", true}, Example{"abcb", "a*bc", false},
        Example{"aXbYbZc", "a*b*c", true}, Example{"layer1.0.bn2.bias", "*.bn?.*", true},
        Example{"abc", "***c**", true}, Example{"abc", "?*?*?", true},
        Example{"ab", "?*?*?", false}, Example{"a.b", "a[.]b", false}}) {
    EXPECT_EQ(matches_pattern(name, pattern), expected) << name << " " << pattern;
  }
}

TEST(Pattern, StaysQuickWhenStarsAbound) {
  const std::string name(20000, 'a');
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "*a";
  EXPECT_FALSE(matches_pattern(name, pattern + "b"));
  EXPECT_TRUE(matches_pattern(name, pattern));
}

}  // namespace
}  // namespace gala
