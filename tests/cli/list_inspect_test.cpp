#include <set>

#include "gala/data/dataset.h"
#include "gala/data/stream.h"
#include "gala/loss/loss.h"
#include "gala/loss/sample_rule.h"
#include "gala/method/after_step.h"
#include "gala/method/readout.h"
#include "gala/model/model.h"
#include "gala/optim/optimizer.h"
#include "gala/select/selector.h"
#include "gala/view/view.h"
#include "tests/cli/run_gala.h"

namespace gala::test {
namespace {

using List = GalaProgram;
using Inspect = GalaProgram;
using Help = GalaProgram;

template <class Entries>
std::set<std::string> names_of(const Entries& entries) {
  std::set<std::string> names;
  for (const auto& entry : entries) names.emplace(entry.name);
  return names;
}

TEST_F(List, NamesEveryEntryOfEveryRegistryAsJson) {
  const Ending ending = run("list --json");
  ASSERT_EQ(ending.code, 0) << ending.err;
  EXPECT_EQ(ending.err, "");
  const auto json = nlohmann::json::parse(ending.out);
  const std::map<std::string, std::set<std::string>> expected = {
      {"losses", names_of(loss_registry())},
      {"samples", names_of(sample_rule_registry())},
      {"after_step", names_of(after_step_registry())},
      {"readouts", names_of(readout_registry())},
      {"selectors", names_of(selector_registry())},
      {"optimizers", names_of(optimizer_registry())},
      {"models", names_of(model_registry())},
      {"views", names_of(view_registry())},
      {"norms", {"source", "batch", "blend", "running", "adaptive", "balanced"}},
      {"guards", {"off", "warn", "stop", "rollback"}},
      {"datasets", names_of(data_registry())},
      {"streams", names_of(stream_registry())}};
  for (const auto& [kind, names] : expected) {
    std::set<std::string> listed;
    for (const auto& method : json.at(kind)) {
      listed.insert(method.at("name"));
      EXPECT_NE(method.at("summary"), "") << method;
      for (const auto& option : method.at("options")) {
        for (const char* key : {"name", "type", "help"}) EXPECT_NE(option.at(key), "") << option;
        EXPECT_TRUE(option.contains("default"));
      }
    }
    EXPECT_EQ(listed, names) << kind;
  }
}

TEST_F(List, ShowsOneKindAlone) {
  const auto json = nlohmann::json::parse(run("list --json").out);
  for (const auto& [kind, methods] : json.items()) {
    const Ending ending = run("list " + kind);
    ASSERT_EQ(ending.code, 0) << ending.err;
    EXPECT_TRUE(ending.out.starts_with(kind + " (")) << ending.out;
    for (const auto& method : methods) {
      EXPECT_CONTAINS(ending.out, "\n  " + method.at("name").get<std::string>() + " ");
    }
  }
  EXPECT_CONTAINS(run("list selectors").out, "threshold=0.75");
}

TEST_F(Inspect, CountsLayersTensorsAndParameters) {
  // Modules and tensors counted from the published networks; parameters as torchvision and
  // RobustBench have them.
  struct Case {
    std::string model;
    int modules, tensors;
    std::string parameters;
  };
  for (const Case& expected :
       {Case{"wide_resnet:depth=28,width=10", 54, 80, "36,479,194"}, Case{"resnext29", 63, 95, ""},
        Case{"resnet18", 41, 62, "11,689,512"}, Case{"resnet50", 107, 161, "25,557,032"}}) {
    const Ending ending = run("inspect --model " + expected.model);
    ASSERT_EQ(ending.code, 0) << ending.err;
    EXPECT_EQ(ending.err, "");
    EXPECT_CONTAINS(ending.out,
                    "layers         " + std::to_string(expected.modules) + " (module)\n");
    EXPECT_CONTAINS(ending.out,
                    expected.parameters + " in " + std::to_string(expected.tensors) + " tensors\n");
    // A heading, a line for each layer, an empty line.
    EXPECT_EQ(ending.out_lines()[static_cast<std::size_t>(expected.modules) + 1], "");
  }
  EXPECT_CONTAINS(run("inspect --model resnet18 --partition tensor").out, "62 (tensor)");
  EXPECT_CONTAINS(run("inspect --model resnet18 --partition block").out, "4 (block)");
}

TEST_F(Inspect, ReadsTheNetworkFromItsWeights) {
  write_source_weights();
  const Ending ending = run("inspect --weights source.safetensors");
  ASSERT_EQ(ending.code, 0) << ending.err;
  EXPECT_CONTAINS(ending.out, "model          wide_resnet:depth=10,width=1,classes=10");
  EXPECT_CONTAINS(ending.out, "weight hash    ");
}

TEST_F(Help, FitsTheTerminalAndEndsWell) {
  for (const char* command : {"", "adapt", "corrupt", "data", "demo", "inspect", "list", "report",
                              "run", "store", "train"}) {
    const Ending ending = run(std::string(command) + " --help", "COLUMNS=80");
    EXPECT_EQ(ending.code, 0);
    EXPECT_EQ(ending.err, "");
    EXPECT_CONTAINS(ending.out, "Usage: gala");
    EXPECT_CONTAINS(ending.out, "Example");
    for (const std::string& line : ending.out_lines()) EXPECT_LE(line.size(), 80U) << line;
  }
  // A kind of value is a word, and said once.
  EXPECT_EQ(run("data --help").out.find("INT:"), std::string::npos);
  EXPECT_EQ(run("store --help").out.find("... ..."), std::string::npos);
  EXPECT_TRUE(run("--version").out.starts_with("gala 0."));
}

}  // namespace
}  // namespace gala::test
