// No command writes over what it reads, whatever the path that leads there.
#include "tests/cli/run_command.h"

namespace gala::test {
namespace {

class Files : public RunCommand {
 protected:
  void SetUp() override {
    write_pictures("x.npy", 16);
    write_labels("y.npy", 16);
  }

  /// Exit code 2, one line that holds the parts, and everything as it was.
  void refuses(const std::string& arguments, const std::vector<std::string>& parts) {
    const auto before = listing();
    const Ending ending = run(arguments);
    EXPECT_EQ(ending.code, 2) << arguments << "\n" << ending.err;
    EXPECT_EQ(ending.out, "") << arguments;
    for (const std::string& part : parts) EXPECT_CONTAINS(ending.err, part) << arguments;
    EXPECT_TRUE(before == listing()) << arguments << " changed something";
  }

  /// The same through a symbolic link, a hard link and a detour.
  void refuses_all_ways(const std::string& arguments, const std::string& out,
                        const std::vector<std::string>& parts) {
    refuses(arguments + " --out " + out, parts);
    std::filesystem::create_directories(path("ways"));
    std::filesystem::create_symlink(path(out), path("ways/soft.npy"));
    std::filesystem::create_hard_link(path(out), path("ways/hard.npy"));
    for (const char* way : {"ways/soft.npy", "ways/hard.npy"}) {
      refuses(arguments + " --out " + way, parts);
      std::filesystem::remove(path(way));
    }
    refuses(arguments + " --out ways/../" + out, parts);
  }

  const std::string data_ = "arrays:images=x.npy,labels=y.npy";
};

TEST_F(Files, ReportKeepsItsStoreAndItsTrace) {
  write("S/records.jsonl", "");
  write("S/traces/a.jsonl", "a trace");
  write("t.jsonl", "a trace");
  const std::vector<std::string> store = {"would overwrite what STORE reads", "--out",
                                          "records.jsonl"};
  for (const char* format : {"csv", "html", "md"}) {
    refuses_all_ways(std::string("report S --format ") + format, "S/records.jsonl", store);
  }
  refuses_all_ways("report S", "S/traces/a.jsonl", {"what STORE reads", "S/traces/a.jsonl"});
  refuses_all_ways("report t.jsonl", "t.jsonl", {"would overwrite what TRACE reads"});
}

TEST_F(Files, StoresAreMergedAndChecked) {
  for (const char* seed : {"0", "1"}) {
    const std::string only = fmt::format("--only row=Source --only seed={} --quiet", seed);
    ASSERT_EQ(run(fmt::format("run plan.toml --store S{} {}", seed, only)).code, 0);
  }
  const std::string other = read("S1/records.jsonl");
  const Ending ending = run("store merge S0 S1");
  EXPECT_EQ(ending.code, 0) << ending.err;
  EXPECT_CONTAINS(ending.out, "S1: ");
  EXPECT_EQ(read("S1/records.jsonl"), other);
  EXPECT_EQ(run("store check S0").code, 0);
  write("S1/records.jsonl", other + "no record\n");
  EXPECT_EQ(run("store check S1").code, 2);
  refuses("store merge S0", {"the store to add to, and others"});
  refuses("store chek S0", {"unknown action \"chek\"", "check"});
  refuses("store merge S0 S0", {"into itself"});
  refuses("store merge S0 nowhere", {"nowhere"});
  refuses("store check", {"stores"});
}

TEST_F(Files, ReportsInAStoreAreReplaced) {
  ASSERT_EQ(run("run plan.toml --store S --only row=Source --only seed=0 --quiet").code, 0);
  write("S/report.html", "an older one");
  const Ending ending = run("report S --out S/report.html");
  EXPECT_EQ(ending.code, 0) << ending.err;
  EXPECT_NE(read("S/report.html"), "an older one");
}

TEST_F(Files, TrainKeepsItsPlanItsDataAndItsFirstWeights) {
  write_source_weights();
  write("p.toml",
        "[model]\nnetwork = \"wide_resnet:depth=10,width=1\"\ninit = \"source.safetensors\"\n"
        "[data]\ntrain = \"" +
            data_ + "\"\naugmentation = \"none\"\n[train]\nepochs = 1\nbatch_size = 8\n");
  refuses_all_ways("train p.toml", "p.toml", {"would overwrite what PLAN reads", "p.toml"});
  refuses_all_ways("train p.toml", "x.npy", {"would overwrite what data.train images reads"});
  refuses_all_ways("train p.toml", "y.npy", {"would overwrite what data.train labels reads"});
  refuses_all_ways("train p.toml", "source.safetensors", {"what model.init reads"});
  // The checkpoint is a file of its own.
  std::filesystem::create_hard_link(path("x.npy"), path("w.checkpoint"));
  refuses("train p.toml --out w", {"w.checkpoint: would overwrite what data.train images reads"});
}

TEST_F(Files, TrainSaysTheScoreWhenTheWeightsFindNoPlace) {
  write("p.toml", "[model]\nnetwork = \"wide_resnet:depth=10,width=1\"\n[data]\ntrain = \"" +
                      data_ + "\"\nevaluation = \"" + data_ +
                      "\"\naugmentation = \"none\"\n[train]\nepochs = 1\nbatch_size = 8\n");
  std::filesystem::create_symlink("/dev/full", path("full"));
  const Ending full = run("train p.toml --out full");
  EXPECT_EQ(full.code, 1);
  EXPECT_CONTAINS(full.out, "accuracy");
  EXPECT_EQ(full.out.find("weights"), std::string::npos);
  EXPECT_EQ(full.err_lines().back(), "error: full: writing failed (is the disk full?)");
  // Nothing has to be learnt again.
  std::filesystem::remove(path("full"));
  const Ending again = run("train p.toml --out full --resume");
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_CONTAINS(again.err, "resume  after step 2 of 2");
  EXPECT_TRUE(again.out.starts_with(full.out));
}

TEST_F(Files, CorruptKeepsItsPictures) {
  const std::string corrupt = "corrupt --corruption fog --severity 1 --data ";
  refuses_all_ways(corrupt + data_, "x.npy", {"would overwrite what --data images reads"});
  refuses_all_ways(corrupt + data_, "y.npy", {"would overwrite what --data labels reads"});
  // In a folder it is the names of the corruptions that may meet.
  write("D/fog.npy", read("x.npy"));
  write("D/labels.npy", read("y.npy"));
  refuses(corrupt + "arrays:images=D/fog.npy --out D",
          {"--out D/fog.npy: would overwrite what --data images reads"});
  refuses(corrupt + "arrays:images=x.npy,labels=D/labels.npy --out ./D",
          {"would overwrite what --data labels reads (D/labels.npy)"});
  EXPECT_EQ(run(corrupt + data_ + " --out new/D").code, 0);
}

TEST_F(Files, OfAFolderOfPicturesNoneIsLost) {
  write_source_weights();
  for (int i = 0; i < 10; ++i) write_png(fmt::format("photos/{}/a.png", i), 1);
  const std::string adapt =
      "adapt --weights source.safetensors --loss entropy --data folder:path=photos --trace ";
  const std::vector<std::string> parts = {"would overwrite what --data path reads",
                                          "photos/3/a.png"};
  refuses(adapt + "photos/3/a.png", parts);
  std::filesystem::create_hard_link(path("photos/3/a.png"), path("hard"));
  refuses(adapt + "hard", parts);
  std::filesystem::rename(path("photos/3/a.png"), path("elsewhere"));
  std::filesystem::create_symlink(path("elsewhere"), path("photos/3/a.png"));
  refuses(adapt + "elsewhere", parts);
  // The file that numbers the classes is read too; what an option is called is no file.
  write("classes.json", R"(["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"])");
  refuses(
      "adapt --weights source.safetensors --data folder:path=photos,classes=classes.json "
      "--predictions ./classes.json",
      {"would overwrite what --data classes reads"});
  const Ending none =
      run("adapt --weights source.safetensors --data folder:path=photos,labels=none --trace none");
  EXPECT_EQ(none.code, 0) << none.err;
  // A trace beside the pictures is no picture, and may be written again.
  for (int i = 0; i < 2; ++i) {
    const Ending ending = run(adapt + "photos/t.jsonl");
    EXPECT_EQ(ending.code, 0) << ending.err;
  }
}

TEST_F(Files, RunKeepsItsPlan) {
  std::filesystem::create_directories(path("S"));
  std::filesystem::create_hard_link(path("plan.toml"), path("S/records.jsonl"));
  refuses("run plan.toml --store S", {"S/records.jsonl: would overwrite what PLAN reads"});
}

TEST_F(Files, TheDemoKeepsItsModel) {
  std::filesystem::create_directories(path("out"));
  std::filesystem::copy(GALA_TEST_ASSETS, path("assets"));
  std::filesystem::create_symlink("../assets/wrn16_2_cifar10.safetensors", path("out/demo.json"));
  refuses("demo --images 100 --assets assets --out out",
          {"--out out/demo.json: would overwrite what --assets reads"});
  std::filesystem::remove(path("out/demo.json"));
  std::filesystem::create_hard_link(path("assets/cifar10_test_2000.png"),
                                    path("out/gala.trace.jsonl"));
  refuses("demo --images 100 --assets assets --out out",
          {"--out out/gala.trace.jsonl: would overwrite what --assets path reads"});
}

TEST_F(Files, TheDemoSaysItsTableWhenItFindsNoPlace) {
  std::filesystem::create_directories(path("out"));
  std::filesystem::create_symlink("/dev/full", path("out/demo.json"));
  const Ending ending = run("demo --images 100 --quiet --out out");
  EXPECT_EQ(ending.code, 1);
  EXPECT_CONTAINS(ending.out, "gala chooses a layer");
  EXPECT_EQ(ending.err, "error: out/demo.json: writing failed (is the disk full?)\n");
  EXPECT_TRUE(ending.out.starts_with(read("out/demo.txt")));
  EXPECT_TRUE(std::filesystem::exists(path("out/report.html")));
}

}  // namespace
}  // namespace gala::test
