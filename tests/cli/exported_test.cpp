#include "tests/cli/run_gala.h"
#include "tests/model/exported_files.h"

namespace gala::test {
namespace {

/// The program with a tiny network that came in a file of torch.export.save.
class ExportedNetwork : public GalaProgram {
 protected:
  void SetUp() override {
    write("net.pt2", file_.write());
    write_pictures("x.npy", 16);
    write_labels("y.npy", 16, 2);
  }
  void refuses(const std::string& arguments, const std::string& part) {
    const Ending ending = run(arguments);
    EXPECT_EQ(ending.code, 2) << arguments << "\n" << ending.err;
    EXPECT_EQ(ending.err_lines().size(), 1U) << ending.err;
    EXPECT_CONTAINS(ending.err, part);
  }

  testing::ExportedFile file_;
};

constexpr const char* kAdapt =
    "adapt --model exported:path=net.pt2 --data arrays:images=x.npy,labels=y.npy --batch-size 8 "
    "--head adapt ";

TEST_F(ExportedNetwork, AdaptsWithoutAWeightFile) {
  const Ending ending = run(std::string(kAdapt) + "--trace t.jsonl --save-weights w.safetensors");
  ASSERT_EQ(ending.code, 0) << ending.err;
  EXPECT_EQ(ending.err.find("random initialisation"), std::string::npos) << ending.err;
  EXPECT_CONTAINS(ending.err, "does not say how its images are prepared");
  const auto steps = read_json_lines("t.jsonl");
  ASSERT_EQ(steps.size(), 2u);
  // What was saved names its network, and is read in its place.
  const Ending again = run("inspect --weights w.safetensors");
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_CONTAINS(again.out, "exported:path=net.pt2,classes=2");
}

TEST_F(ExportedNetwork, IsInspected) {
  const Ending ending = run("inspect --model exported:path=net.pt2");
  ASSERT_EQ(ending.code, 0) << ending.err;
  EXPECT_CONTAINS(ending.out, "fc");
  EXPECT_CONTAINS(ending.out, "linear");
  EXPECT_CONTAINS(ending.out, "weight hash");
}

TEST_F(ExportedNetwork, IsNeverWrittenOver) {
  const std::string before = read("net.pt2");
  refuses(std::string(kAdapt) + "--save-weights net.pt2", "net.pt2");
  EXPECT_EQ(read("net.pt2"), before);
}

TEST_F(ExportedNetwork, IsRefusedWhereItCannotBeRead) {
  refuses("inspect --model exported", "path must name a .pt2 file");
  refuses("inspect --model exported:path=nowhere.pt2", "nowhere.pt2");
  refuses("inspect --model exported:path=x.npy", "is no exported network");
  refuses("inspect --model exported:path=net.pt2,classes=10", "has 2 classes, not 10");
  write("cut.pt2", read("net.pt2").substr(0, 700));
  refuses("inspect --model exported:path=cut.pt2", "damaged zip archive");
  file_.nodes()[0]["target"] = "torch.ops.aten.no_such_thing.default";
  write("odd.pt2", file_.write());
  refuses("inspect --model exported:path=odd.pt2", "this operator is not known here");
  refuses("adapt --model exported:path=odd.pt2 --data arrays:images=x.npy", "not known here");
}

}  // namespace
}  // namespace gala::test
