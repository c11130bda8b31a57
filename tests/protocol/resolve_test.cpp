#include "gala/protocol/resolve.h"

#include "gala/model/weights.h"
#include "tests/protocol/runner_case.h"

namespace gala {
namespace {

namespace fs = std::filesystem;
using test::kAssets;
using test::RunnerTest;
using ResolveTest = RunnerTest;

TEST_F(ResolveTest, AMistakeOfManyRunsIsNamedOnce) {
  const std::string grid = "[axes]\nseed = [0, 1, 2]\n[[row]]\nname = \"a\"\n";
  const auto own = problems_of(continual(), grid + "loss = \"shot:gamma=1\"\n");
  ASSERT_EQ(own.size(), 1u);
  EXPECT_CONTAINS(own[0], "a, seed=0, and 2 more: ");
  EXPECT_CONTAINS(own[0], "gamma");
  // What is wrong with the weights is not a run's own.
  const auto shared = problems_of(continual() + "train = \"none.toml\"\n", grid);
  ASSERT_EQ(shared.size(), 1u);
  EXPECT_EQ(shared[0].find("seed"), std::string::npos) << shared[0];
}

TEST_F(ResolveTest, EqualRunsAreOneRun) {
  const auto runs =
      ready(continual(),
            "[axes]\nloss = [\"pseudo_label\", \"shot\"]\n"
            "[[row]]\nname = \"Source\"\nselect = \"none\"\nnorm = \"source\"\n"
            "[[row]]\nname = \"GALA\"\nselect = \"gala\"\n"
            "[[row]]\nname = \"Window 20\"\nselect = \"gala:window=20\"\ntrace = true\n"
            "[[row]]\nname = \"Rate\"\noptimizer = \"adam:rate=1e-3\"\n");
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_TRUE(runs[0].labels.loss.empty());
  EXPECT_TRUE(runs[0].places.empty());
  ASSERT_EQ(runs[1].places.size(), 2u);
  EXPECT_EQ(runs[1].places[0].row, "Window 20");
  EXPECT_TRUE(runs[1].trace) << "wanted by one of its places";
  EXPECT_FALSE(runs[0].trace);
}

TEST_F(ResolveTest, AnOptionThatCameLaterLeavesOlderKeysAlone) {
  const auto runs = ready(continual(),
                          "[[row]]\nname = \"Seed\"\nselect = \"random\"\n"
                          "[[row]]\nname = \"Named\"\nselect = \"random:draws=seed\"\n"
                          "[[row]]\nname = \"Run\"\nselect = \"random:draws=run\"\n");
  ASSERT_EQ(runs.size(), 2u);  // the default, named or not, is one run
  EXPECT_EQ(runs[0].spec.select, "random");
  EXPECT_EQ(runs[1].spec.select, "random:draws=run");
}

TEST_F(ResolveTest, ImagesOfTheSourceAreOfThoseRowsThatLearnFromThem) {
  const auto runs = ready(continual() + "source_data = \"cifar10:path=data,split=train\"\n",
                          "[[row]]\nname = \"GALA\"\nselect = \"gala\"\n"
                          "[[row]]\nname = \"Fisher\"\npenalty = \"fisher\"\n");
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].spec.source_data, "");
  EXPECT_EQ(runs[1].spec.source_data, "cifar10:split=train");
}

TEST_F(ResolveTest, EveryRunHasAPlaceOfItsOwn) {
  EXPECT_CONTAINS(problem_of(continual(), "[axes]\noptimizer = [\"adam\", \"sgd\"]\n"),
                  "Test, optimizer=sgd: has the place of another run");
  const auto runs = ready(continual(), "[axes]\nseed = [0, 4]\n");
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[1].labels.trial, 4);
}

TEST_F(ResolveTest, SaysWhatCannotBe) {
  EXPECT_CONTAINS(problem_of("seed = 1\n"), "protocol is missing");
  EXPECT_CONTAINS(problem_of(continual("contrast", "select = \"fixed:layers=layer9\"\n")),
                  "layer9");
  EXPECT_CONTAINS(problem_of(continual("contrast", "partition = \"row\"\n")),
                  "partition cannot be \"row\"");
  EXPECT_CONTAINS(
      problem_of(continual("contrast", "stream = \"mixed\"\nrestart_at_borders = true")),
      "the stream mixed has no borders");
  EXPECT_CONTAINS(problem_of(continual("contrast", "stream = \"gradual\"\n")), "severity");
  EXPECT_CONTAINS(problem_of(continual("contrast", "optimizer = \"adam:rat=1\"\n")), "rat");
  EXPECT_CONTAINS(problem_of(continual("contrast", "optimizer = \"adam:rate=fast\"\n")), "fast");
  EXPECT_CONTAINS(problem_of(continual("contrast", "guard = \"warn:evry=1\"\n")), "every");
  EXPECT_CONTAINS(problem_of(continual("contrast", "norm = \"bach\"\n")), "batch");
  EXPECT_CONTAINS(problem_of(continual("contrast", "model = \"wide_resnet:classes=7\"\n")),
                  "the weights do not fit wide_resnet");
  std::string fresh = continual("contrast", "model = \"wide_resnet:depth=10,width=1,classes=7\"\n");
  fresh.erase(fresh.find("weights = "), fresh.find("batch_size") - fresh.find("weights = "));
  EXPECT_CONTAINS(problem_of(fresh), "the head of wide_resnet has 7");
  EXPECT_CONTAINS(problem_of(continual("contrast", "train = \"none.toml\"\n")), "none.toml");
  EXPECT_CONTAINS(problem_of("protocol = \"domainbed:path=nowhere\"\nmodel = \"resnet18\"\n"),
                  "nowhere");
}

TEST_F(ResolveTest, OtherPreprocessingIsAnotherRun) {
  const std::string weights = kAssets + "/wrn16_2_cifar10.safetensors";
  const nlohmann::json metadata = read_weights(weights).metadata;
  auto model = make_model(Spec::parse(metadata.at("model").get<std::string>()), 0);
  load_weights(*model, weights);
  Preprocessing other = model->preprocessing();
  other.std[0] = 0.5;
  model->set_preprocessing(other);
  save_weights(*model, folder_ / "other.safetensors",
               {.metadata = {{"training", metadata.at("training")}}});
  const auto usual = ready(continual("contrast", "select = \"none\"\n"));
  std::string text = continual("contrast", "select = \"none\"\n");
  text.replace(text.find(weights), weights.size(), (folder_ / "other.safetensors").string());
  const auto changed = ready(text);
  EXPECT_FALSE(usual[0].spec.training.contains("preprocessing"));
  EXPECT_NE(changed[0].key, usual[0].key);
}

TEST_F(ResolveTest, WeightsThatDoNotFitAreFoundBeforeTheFirstRun) {
  EXPECT_CONTAINS(problem_of(continual("contrast", "model = \"resnet18\"\n")),
                  "the weights do not fit resnet18");
}

TEST_F(ResolveTest, KnowsTheTrainingOfWeights) {
  const auto runs = ready(continual("contrast", "select = \"none\"\n"));
  const nlohmann::json& training = runs[0].spec.training;
  EXPECT_EQ(training.at("plan").at("train").at("seed").get<std::string>(), "0");
  EXPECT_EQ(training.at("plan").at("data").at("train").get<std::string>(),
            "cifar10:path=cifar10,split=train");
  EXPECT_FALSE(training.dump().find("wrn16_2_cifar10.safetensors") != std::string::npos);
  // The same plan by name gives the same run, even when the weights are gone.
  fs::copy_file(std::string(GALA_TEST_SOURCE_DIR) + "/plans/train_cifar10_wrn16_2.toml",
                folder_ / "train.toml");
  const std::string gone = fmt::format(
      "protocol = 'continual:generate=yes,images=60,path={}/cifar10_test_2000.png,"
      "corruption=\"contrast\"'\nbatch_size = 20\nselect = \"none\"\ntrain = \"train.toml\"\n",
      kAssets);
  const auto again = ready(gone);
  EXPECT_EQ(again[0].spec.training, training) << again[0].spec.training.dump(1);
  EXPECT_EQ(again[0].key, runs[0].key);
  Problems problems;
  check_weights({&again[0]}, problems);
  ASSERT_EQ(problems.list().size(), 1u);
  EXPECT_CONTAINS(problems.list()[0],
                  "wrn16_2_cifar10.safetensors is missing; to make it: gala train");
  // Weights of another seed are not taken for these.
  std::string text = test::read_text(folder_ / "train.toml");
  text.replace(text.find("seed = 0"), 8, "seed = 5");
  test::write_text(folder_ / "train.toml", text);
  EXPECT_CONTAINS(problem_of(continual("contrast", "train = \"train.toml\"\n")),
                  "train.seed is \"0\" and should be \"5\"");
}

}  // namespace
}  // namespace gala
