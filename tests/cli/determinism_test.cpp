// What is promised of equal bytes on one machine (docs/reliability.md): the same command twice, with one thread or
// with two, and any number of jobs.
#include "tests/cli/run_command.h"

namespace gala::test {
namespace {

class Determinism : public RunCommand {
 protected:
  void SetUp() override {
    write_source_weights();
    write_pictures("x.npy", 48);
    write_labels("y.npy", 48);
  }
  static std::string outputs(const std::string& name) {
    return " --trace " + name + ".jsonl --predictions " + name + ".csv --save-weights " + name +
           ".safetensors --events " + name + ".events";
  }
  void expect_equal_bytes(const std::string& a, const std::string& b) const {
    for (const char* kind : {".jsonl", ".csv", ".safetensors", ".events"}) {
      EXPECT_TRUE(read(a + kind) == read(b + kind)) << a << ' ' << b << ' ' << kind;
    }
  }
};

TEST_F(Determinism, AdaptingTwiceGivesTheSameBytesWithAsManyThreads) {
  for (const char* threads : {"1", "2"}) {
    for (const char* name : {"a", "b"}) {
      const Ending ending =
          run(std::string("adapt --weights source.safetensors --batch-size 16 --deterministic "
                          "--loss shot:beta=0.1 --norm running --seed 5 --data "
                          "arrays:images=x.npy,labels=y.npy --threads ") +
              threads + outputs(name));
      ASSERT_EQ(ending.code, 0) << ending.err;
    }
    expect_equal_bytes("a", "b");
  }
}

TEST_F(Determinism, RunsGiveTheSameRecordsWithAnyNumberOfJobs) {
  const std::string only = " --threads 2 --deterministic --only seed=0 --only loss=shot";
  ASSERT_EQ(run("run plan.toml --store one --jobs 1" + only).code, 0);
  ASSERT_EQ(run("run plan.toml --store two --jobs 2" + only).code, 0);
  EXPECT_EQ(records("one"), records("two"));
}

TEST_F(Determinism, TrainingTwiceGivesTheSameBytesWithAsManyThreads) {
  write("train.toml",
        "[model]\nnetwork = \"wide_resnet:depth=10,width=1,classes=10\"\n[data]\ntrain = "
        "\"arrays:images=x.npy,labels=y.npy\"\naugmentation = \"crop_flip\"\n[train]\nepochs = "
        "2\nbatch_size = 16\n[output]\ntype = \"float32\"\n");
  for (const char* name : {"a", "b"}) {
    const Ending ending =
        run(std::string("train train.toml --threads 2 --out ") + name + ".safetensors");
    ASSERT_EQ(ending.code, 0) << ending.err;
  }
  EXPECT_TRUE(read("a.safetensors") == read("b.safetensors"));
}

}  // namespace
}  // namespace gala::test
