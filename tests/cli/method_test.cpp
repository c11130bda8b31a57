// Methods by their names, and parts of methods, on the command line.
#include "tests/cli/run_gala.h"

namespace gala::test {
namespace {

class MethodFlag : public GalaProgram {
 protected:
  void SetUp() override {
    write_source_weights();
    write_pictures("x.npy", 24);
    write_labels("y.npy", 24);
    write_pictures("source.npy", 16, /*seed=*/2);
  }
  Ending adapt(const std::string& flags) {
    return run(
        "adapt --weights source.safetensors --data arrays:images=x.npy,labels=y.npy --batch-size 8 "
        "--deterministic " +
        flags);
  }
  std::string predictions(const std::string& flags) {
    const Ending ending = adapt(flags + " --predictions p.csv");
    EXPECT_EQ(ending.code, 0) << flags << "\n" << ending.err;
    return read("p.csv");
  }
};

TEST_F(MethodFlag, RunsEveryMethodThatIsListed) {
  const auto listed = nlohmann::json::parse(run("list methods --json").out).at("methods");
  ASSERT_GT(listed.size(), 10u);
  for (const auto& method : listed) {
    const std::string name = method.at("name");
    const bool wants_source = name == "eata" || name == "petta";
    const Ending ending =
        adapt("--method " + name + (name == "cotta" ? " --teacher mean:views=2" : "") +
              (wants_source ? " --source-data arrays:images=source.npy" : ""));
    EXPECT_EQ(ending.code, 0) << name << "\n" << ending.err;
    EXPECT_CONTAINS(ending.out, "answered   24 images in 3 batches");
    EXPECT_CONTAINS(ending.out, "0 refused");
  }
}

/// A name is what the list says of it, and a flag goes over it wherever it stands.
TEST_F(MethodFlag, IsTheSameAsItsParts) {
  const std::string parts =
      "--select norm_affine --optimizer adam:rate=0.001 --loss "
      "soft_likelihood_ratio+consistency "
      "--samples diverse_certain --view augment:padding=reflect,blur=no,noise=0 --after-step "
      "ensemble --readout prior";
  EXPECT_EQ(predictions("--method roid"), predictions(parts + " --norm batch"));
  EXPECT_EQ(predictions("--norm source --method roid"), predictions(parts + " --norm source"));
  EXPECT_NE(predictions("--method roid --norm source"), predictions("--method roid"));
}

TEST_F(MethodFlag, GoesOnFromASavedState) {
  EXPECT_EQ(adapt("--method cmf --save-state s.state").code, 0);
  const Ending other = adapt("--method roid --resume s.state");
  EXPECT_EQ(other.code, 2);
  EXPECT_CONTAINS(other.err, "after_step");
}

TEST_F(MethodFlag, RefusesWhatDoesNotFitWithExitCodeTwo) {
  const std::pair<const char*, const char*> cases[] = {
      {"--method rood", "did you mean \"roid\""},
      {"--method eata", "source_data"},
      {"--method roid --view none", "no view"},
      {"--method tent --view flip", "nobody looks"},
      {"--method cotta --teacher none", "needs a teacher"},
      {"--method tent --answer teacher", "needs a teacher"},
      {"--loss entropy+entropie", "did you mean \"entropy\""},
      {"--after-step restore:share=3", "share"},
      {"--reset every:steps=0", "steps"},
      {"--perturb sum", "did you mean \"sam\""},
      {"--penalty fisher --source-data arrays:images=nothing.npy", "nothing.npy"},
      {"--select palm:temperature=0", "temperature"},
      {"--method petta", "source_data"},
      {"--method tent --store window:length=4", "length=8 or more"},
      {"--method rotta --store none", "how old images are"},
      {"--method rotta --episodic", "empty each time"},
      {"--method rotta --store balanced:size=1", "size must lie in"},
      {"--method memo --predict adapting", "by the view alone"},
      {"--method tent --source-data arrays:images=source.npy", "nobody learns"},
      {"--penalty cosine --source-data arrays:images=source.npy", "the penalty fisher and"},
      {"--drift features --source-data arrays:images=source.npy", "nobody asks the drift"},
  };
  for (const auto& [flags, word] : cases) {
    const Ending ending = adapt(flags);
    EXPECT_EQ(ending.code, 2) << flags << "\n" << ending.err;
    EXPECT_CONTAINS(ending.err, word);
  }
}

TEST_F(MethodFlag, SourceImagesAreNoMistakeWhereNothingAdapts) {
  EXPECT_EQ(adapt("--select none --source-data arrays:images=source.npy").code, 0);
}

TEST_F(MethodFlag, SaysHowOftenItWentBack) {
  EXPECT_CONTAINS(adapt("--method tent --reset every:steps=1").out, "reset      3 times");
}

}  // namespace
}  // namespace gala::test
