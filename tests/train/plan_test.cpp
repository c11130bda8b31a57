#include "gala/train/plan.h"

#include <gtest/gtest.h>

#include "gala/train/setup.h"
#include "tests/data/support.h"

namespace gala {
namespace {

constexpr char kGood[] = R"(
[model]
network = "wide_resnet:depth=10,width=1,classes=3"
[data]
train = "cifar10:path=here,split=train"
evaluation = "cifar10:path=here,split=test"
augmentation = "crop_flip"
[train]
epochs = 7
batch_size = 64
optimizer = "adam:rate=0.001"
schedule = "constant"
warmup_epochs = 2
label_smoothing = 0.25
seed = 11
evaluate_every = 3
checkpoint_every = 100
[output]
weights = "out.safetensors"
type = "float16"
)";

std::string problems_of(const std::string& text) {
  Problems problems;
  parse_train_plan(text, problems);
  return fmt::format("{}", fmt::join(problems.list(), "\n"));
}

std::string with(std::string text, std::string_view old, std::string_view fresh) {
  const auto place = text.find(old);
  EXPECT_NE(place, std::string::npos) << old;
  return text.replace(place, old.size(), fresh);
}

TEST(TrainPlan, IsReadKeyByKey) {
  Problems problems;
  const TrainPlan plan = parse_train_plan(kGood, problems);
  EXPECT_TRUE(problems.empty()) << problems_of(kGood);
  EXPECT_EQ(plan.model.network, "wide_resnet:depth=10,width=1,classes=3");
  EXPECT_EQ(plan.data.train, "cifar10:path=here,split=train");
  EXPECT_EQ(plan.data.evaluation, "cifar10:path=here,split=test");
  EXPECT_EQ(plan.data.augmentation, Augmentation::kCropFlip);
  EXPECT_EQ(plan.train.epochs, 7);
  EXPECT_EQ(plan.train.batch_size, 64);
  EXPECT_EQ(plan.train.optimizer, "adam:rate=0.001");
  EXPECT_EQ(plan.train.schedule, ScheduleKind::kConstant);
  EXPECT_EQ(plan.train.warmup_epochs, 2);  // an integer where a number is wanted
  EXPECT_EQ(plan.train.label_smoothing, 0.25);
  EXPECT_EQ(plan.train.seed, 11);
  EXPECT_EQ(plan.train.evaluate_every, 3);
  EXPECT_EQ(plan.train.checkpoint_every, 100);
  EXPECT_EQ(plan.output.weights, "out.safetensors");
  EXPECT_EQ(plan.output.type, WeightType::kFloat16);
  EXPECT_EQ(plan.text, kGood);
}

TEST(TrainPlan, NamesAllMistakesAtOnceWithTheirLines) {
  std::string text = with(kGood, "epochs = 7", "epoch = 7");
  text = with(text, "batch_size = 64", "batch_size = \"many\"");
  text = with(text, "\"crop_flip\"", "\"crop\"");
  text = with(text, "[output]", "[outputs]");
  text = with(text, "label_smoothing = 0.25", "label_smoothing = 1.5");
  const std::string problems = problems_of(text);
  EXPECT_CONTAINS(problems, "line 9: [train] has no key \"epoch\" (did you mean \"epochs\"?");
  EXPECT_CONTAINS(problems, "line 10: train.batch_size cannot be");
  EXPECT_CONTAINS(problems, "expected integer");
  EXPECT_CONTAINS(problems, "line 7: data.augmentation cannot be");
  EXPECT_CONTAINS(problems, "none|crop_flip|augmix|domainbed");
  EXPECT_CONTAINS(problems, "a plan has no section \"outputs\" (did you mean \"output\"?");
  EXPECT_CONTAINS(problems, "train.label_smoothing must be from 0 to below 1, not 1.5");
}

TEST(TrainPlan, RefusesWhatIsMissingOrOutOfRange) {
  const std::string empty = problems_of("");
  EXPECT_CONTAINS(empty, "model.network is missing");
  EXPECT_CONTAINS(empty, "data.train is missing");
  EXPECT_CONTAINS(problems_of(with(kGood, "epochs = 7", "epochs = 0")), "train.epochs must be");
  EXPECT_CONTAINS(problems_of(with(kGood, "batch_size = 64", "batch_size = 0")),
                  "train.batch_size");
  EXPECT_CONTAINS(problems_of(with(kGood, "warmup_epochs = 2", "warmup_epochs = 8")),
                  "train.warmup_epochs must be from 0 to train.epochs, not 8");
  EXPECT_CONTAINS(problems_of(with(kGood, "warmup_epochs = 2", "warmup_epochs = nan")),
                  "train.warmup_epochs cannot be nan");
  EXPECT_CONTAINS(problems_of(with(kGood, "epochs = 7", "epochs = 7.0")), "expected integer");
  EXPECT_CONTAINS(problems_of(with(kGood, "seed = 11", "seed = -1")), "train.seed");
  EXPECT_CONTAINS(problems_of(with(kGood, "evaluation = \"cifar10:path=here,split=test\"", "")),
                  "train.evaluate_every needs data.evaluation");
  EXPECT_CONTAINS(problems_of("model = 3\n"), "line 1: model must be a section: [model]");
}

constexpr char kWithParameters[] = R"(
[parameters]
set = "PACS"
env = 0
smooth = 0.25
[model]
network = "resnet18"
[data]
train = "domainbed:path=data/{set},leave_out={env}"
evaluation = "domainbed:path=data/{set},leave_out={env},split=out"
[train]
seed = "{env}"
label_smoothing = "{smooth}"
[output]
weights = "{set}_{env}.{not a name}"
)";

std::string problems_with(const std::string& text, std::vector<PlanSetting> settings) {
  Problems problems;
  parse_train_plan(text, problems, settings);
  return fmt::format("{}", fmt::join(problems.list(), "\n"));
}

TEST(TrainPlan, PutsParametersWhereTheyAreNamed) {
  Problems problems;
  TrainPlan plan = parse_train_plan(kWithParameters, problems);
  EXPECT_TRUE(problems.empty()) << problems_of(kWithParameters);
  EXPECT_EQ(plan.data.train, "domainbed:path=data/PACS,leave_out=0");
  EXPECT_EQ(plan.train.seed, 0);
  EXPECT_EQ(plan.train.label_smoothing, 0.25);
  EXPECT_EQ(plan.output.weights, "PACS_0.{not a name}");

  const std::vector<PlanSetting> settings = {
      PlanSetting::parse("set=VLCS"), PlanSetting::parse("env=3"),
      PlanSetting::parse("train.batch_size=16"), PlanSetting::parse("model.init=a=b.pt")};
  plan = parse_train_plan(kWithParameters, problems, settings);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(plan.data.evaluation, "domainbed:path=data/VLCS,leave_out=3,split=out");
  EXPECT_EQ(plan.train.seed, 3);
  EXPECT_EQ(plan.train.batch_size, 16);
  EXPECT_EQ(plan.model.init, "a=b.pt");
  EXPECT_EQ(plan.parameters, (std::map<std::string, std::string>{{"set", "VLCS"},
                                                                 {"env", "3"},
                                                                 {"smooth", "0.25"},
                                                                 {"train.batch_size", "16"},
                                                                 {"model.init", "a=b.pt"}}));
  // File and parameters give the same plan again.
  std::vector<PlanSetting> again;
  for (const auto& [name, value] : plan.parameters) again.push_back({name, value});
  const TrainPlan second = parse_train_plan(plan.text, problems, again);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(second.data.train, plan.data.train);
  EXPECT_EQ(second.train.seed, plan.train.seed);
  EXPECT_EQ(second.parameters, plan.parameters);
}

TEST(TrainPlan, NamesParametersThatDoNotFit) {
  const std::string problems =
      problems_with(with(kWithParameters, "path=data/{set},leave_out={env}\"\neval",
                         "path=data/{sets},leave_out={env}\"\neval"),
                    {{"enw", "1"}, {"env", "photo"}, {"train.seeds", "2"}, {"outputs.type", "x"}});
  EXPECT_CONTAINS(problems, "--set: the plan has no parameter \"enw\" (did you mean \"env\"?");
  EXPECT_CONTAINS(problems,
                  "--set: parameter env cannot be \"photo\" (expected a value such as 0)");
  EXPECT_CONTAINS(problems, "line 9: the plan has no parameter \"sets\" (did you mean \"set\"?");
  EXPECT_CONTAINS(problems, "[train] has no key \"seeds\" (did you mean \"seed\"?");
  EXPECT_CONTAINS(problems, "a plan has no section \"outputs\" (did you mean \"output\"?");
  EXPECT_CONTAINS(problems_with(kGood, {{"env", "1"}}), "no parameter \"env\" (it has none)");
  EXPECT_CONTAINS(problems_with("[parameters]\na = [1]\n\"b c\" = 1\n", {}),
                  "line 2: parameters.a must be a text, a number");
  EXPECT_CONTAINS(test::message_of<ConfigError>([] { PlanSetting::parse("env"); }),
                  "\"env\" is not NAME=VALUE");
}

TEST(TrainPlan, ThatBreaksTheParserIsNoPlan) {
  EXPECT_NE(problems_of("[=").find("is not TOML"), std::string::npos);
}

/// A long parameter that is named often would fill the memory.
TEST(TrainPlan, RefusesTextsThatGrowBeyondMeasure) {
  std::string references;
  for (int i = 0; i < 1000; ++i) references += "{long}";
  const std::string plan = with(kGood, "out.safetensors", references);
  EXPECT_NE(problems_of(plan + "[parameters]\nlong = \"" + std::string(1000, 'x') + "\"\n")
                .find("a value has more than 10000 characters"),
            std::string::npos);
}

TEST(TrainPlan, RefusesWhatDoesNotGoTogether) {
  const std::string problems = problems_with(kGood, {{"data.sampling", "per_domain"},
                                                     {"train.keep", "best"},
                                                     {"train.evaluate_every", "0"},
                                                     {"train.consistency", "12"}});
  EXPECT_CONTAINS(problems, "train.steps must be from 1 to 100000000, not 0");
  EXPECT_CONTAINS(problems, "train.warmup_epochs must be 0 with sampling per_domain");
  EXPECT_CONTAINS(problems, "train.keep = \"best\" needs data.evaluation and train.evaluate_every");
  EXPECT_CONTAINS(problems, "train.consistency needs data.augmentation = \"augmix\"");
  EXPECT_CONTAINS(problems_with(kGood, {{"train.steps", "5"}}),
                  "train.steps must be left out unless sampling is per_domain, not 5");
}

TEST(TrainPlan, ThePlansThatAreShippedAreSound) {
  const auto folder = std::filesystem::path(GALA_TEST_SOURCE_DIR) / "plans";
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!entry.path().filename().string().starts_with("train_")) continue;
    Problems problems;
    const TrainPlan plan = read_train_plan(entry.path(), problems);
    EXPECT_TRUE(problems.empty()) << entry.path()
                                  << fmt::format("{}", fmt::join(problems.list(), "; "));
    EXPECT_NO_THROW(make_model(Spec::parse(plan.model.network))) << entry.path();
    EXPECT_FALSE(plan.output.weights.empty()) << entry.path();
    ++count;
  }
  EXPECT_GE(count, 5);
}

TEST(TrainPlan, SaysWhereItIsNotToml) {
  EXPECT_CONTAINS(problems_of("[model]\nnetwork = wide\n"), "line 2: ");
}

TEST(TrainPlan, ReadsDataFromAnotherFolder) {
  Problems problems;
  TrainPlan plan = parse_train_plan(kGood, problems);
  plan.data.evaluation = "arrays:images=a.npy,labels=b.npy";
  plan.set_data_path("some where");
  EXPECT_EQ(plan.data.train, "cifar10:path=\"some where\",split=train");
  EXPECT_EQ(plan.data.evaluation, "arrays:images=a.npy,labels=b.npy");
}

TEST(OpenTraining, FindsEverythingThatDoesNotFitBeforeTheFirstStep) {
  Problems problems;
  TrainPlan plan = parse_train_plan(kGood, problems);
  plan.model.network = "wide_resnet:depth=11";
  plan.data.train = "cifar10:path=does_not_exist,split=train";
  plan.data.evaluation = "arrays:images=nowhere.npy,labels=nowhere.npy";
  plan.train.optimizer = "sgd:rat=1";
  open_training(plan, problems);
  const std::string all = fmt::format("{}", fmt::join(problems.list(), "\n"));
  EXPECT_EQ(problems.list().size(), 4U) << all;
  EXPECT_CONTAINS(all, "model.network: ");
  EXPECT_CONTAINS(all, "data.train: ");
  EXPECT_CONTAINS(all, "data.evaluation: ");
  EXPECT_CONTAINS(all, "train.optimizer: optimizer sgd has no option \"rat\"");
  EXPECT_CONTAINS(test::message_of<ConfigError>([&] { problems.throw_if_any("a.toml"); }),
                  "a.toml: 4 problems\n  - ");
}

TEST(OpenTraining, RefusesToAugmentFloatArrays) {
  const auto folder = std::filesystem::path(GALA_TEST_BUILD_DIR) / "fixtures" / "train";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "needs a Python with torch";
  Problems problems;
  TrainPlan plan;
  plan.model.network = "wide_resnet:depth=10,width=1,classes=5";
  plan.data.train =
      fmt::format("arrays:images=\"{0}/images.npy\",labels=\"{0}/labels.npy\"", folder.string());
  plan.data.augmentation = Augmentation::kCropFlip;
  plan.train.batch_size = 16;
  open_training(plan, problems);
  ASSERT_EQ(problems.list().size(), 1U);
  EXPECT_CONTAINS(problems.list()[0], "data.augmentation must be none");
  problems = {};
  plan.data.augmentation = Augmentation::kNone;
  plan.model.network = "wide_resnet:depth=10,width=1,classes=4";
  plan.train.batch_size = 161;
  open_training(plan, problems);
  ASSERT_EQ(problems.list().size(), 1U);
  EXPECT_CONTAINS(problems.list()[0], "arrays has 5 classes, but the head of wide_resnet has 4");
}

}  // namespace
}  // namespace gala
