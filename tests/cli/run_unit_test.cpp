#include "tests/cli/run_command.h"

namespace gala::test {
namespace {

TEST_F(RunCommand, ScoresAsGalaAdaptDoes) {
  write_source_weights();
  std::filesystem::create_directories(path("C"));
  for (const char* name : {"fog", "frost"}) {
    write_pictures(fmt::format("C/{}.npy", name), 60, name[1] == 'o' ? 3 : 4);
  }
  write_labels("C/labels.npy", 60);
  write("arrays.toml", R"(
[plan]
name = "arrays"
title = "Arrays"
[run]
protocol = 'continual:path=C,corruption="fog,frost"'
weights = "source.safetensors"
batch_size = 20
loss = "shot"
select = "gala:window=2,opening_scale=1"
optimizer = "adam:rate=0.05"
)");
  ASSERT_EQ(run("run arrays.toml --store store --threads 1").code, 0);
  const Ending adapt =
      run("adapt --weights source.safetensors --data cifar10c:path=C,corruption=\"fog,frost\" "
          "--norm batch "
          "--batch-size 20 --loss shot --select gala:window=2,opening_scale=1 --optimizer "
          "adam:rate=0.05 --threads 1 --quiet");
  ASSERT_EQ(adapt.code, 0) << adapt.err;
  const nlohmann::json record = records("store").begin()->second;
  EXPECT_FALSE(record.contains("source")) << "no clean images were named";
  for (const auto& domain : record.at("domains")) {
    const std::string line = fmt::format("{:.2f} %", 100 * domain.at("correct").get<double>() / 60);
    EXPECT_CONTAINS(adapt.out, line);
  }
  EXPECT_NE(record.at("domains").at(0).at("correct"), record.at("domains").at(1).at("correct"));
}

// The unit of the DomainBed experiments: train, run, keep the records, drop the weights.
TEST_F(RunCommand, RunsFromATrainingPlanAndThenWithoutTheWeights) {
  for (const char* environment : {"art", "cartoon", "photo"}) {
    for (int i = 0; i < 20; ++i) {
      write_png(fmt::format("data/PACS/{}/class{}/{}.png", environment, i % 2, i),
                static_cast<std::uint64_t>(i));
    }
  }
  write("train.toml", R"(
[parameters]
env = 0
trial = 0
[model]
network = "wide_resnet:depth=10,width=1"
[data]
train = "domainbed:path=data/PACS,leave_out={env},split=in,trial={trial}"
evaluation = "domainbed:path=data/PACS,leave_out={env},split=out,trial={trial}"
sampling = "per_domain"
[train]
steps = 3
batch_size = 4
optimizer = "adam:rate=0.001"
schedule = "constant"
seed = "{trial}"
evaluate_every = 2
keep = "best"
precision = "float32"
[output]
weights = "env{env}_trial{trial}.safetensors"
)");
  write("unit.toml", R"(
[plan]
name = "unit"
title = "One unit"
hyper = ["rate"]
[run]
protocol = "domainbed:path=data/PACS,env={env},trial={trial}"
train = "train.toml"
train_set = "env={env},trial={trial}"
optimizer = "adam:rate={rate}"
batch_size = 8
env = 1
trial = 2
[axes]
rate = [1e-4, 1e-3]
[[row]]
name = "ERM"
select = "none"
hyper = []
[[row]]
name = "GALA"
[[row]]
name = "Block {block}"
select = "fixed:layers=block{block}"
partition = "block"
block = [1, 2, 3]
)");
  const Ending missing = run("run unit.toml --store store");
  EXPECT_EQ(missing.code, 2);
  const std::string make = "gala train train.toml --set env=1 --set trial=2";
  EXPECT_CONTAINS(missing.err, "env1_trial2.safetensors is missing; to make it: " + make);
  const Ending trained = run(make.substr(5));
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Ending first = run("run unit.toml --store store");
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_CONTAINS(first.out, "hyper-parameters by training_domain (PACS)");
  EXPECT_CONTAINS(first.out, "rate=0.0001");
  EXPECT_EQ(records("store").size(), 1u + 2 + 6);
  std::filesystem::remove(path("env1_trial2.safetensors"));
  const Ending without = run("run unit.toml --store store");
  EXPECT_EQ(without.code, 0) << without.err;
  EXPECT_EQ(without.out, first.out);
  // Weights of another training are not taken for them.
  ASSERT_EQ(run("train train.toml --set env=1 --set trial=2 --set train.steps=2 --out "
                "env1_trial2.safetensors")
                .code,
            0);
  const Ending wrong = run("run unit.toml --store other");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_CONTAINS(wrong.err, "train.steps is \"2\" and should be \"3\"");
}

}  // namespace
}  // namespace gala::test
