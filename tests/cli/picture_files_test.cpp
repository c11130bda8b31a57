#include <fmt/format.h>

#include <cstring>

#include "tests/cli/run_gala.h"

namespace gala::test {
namespace {

/// What `gala adapt` makes of the files it is given.
class PictureFiles : public GalaProgram {
 protected:
  void SetUp() override { write_source_weights(); }

  /// The source weights once more, as `name`, with another header.
  template <class Change>
  void rewrite_weights(const std::string& name, Change&& change) const {
    const std::string source = read("source.safetensors");
    std::uint64_t length = 0;
    std::memcpy(&length, source.data(), 8);
    auto header = nlohmann::json::parse(source.substr(8, length));
    change(header);
    const std::string text = header.dump();
    length = text.size();
    write(name, std::string(reinterpret_cast<const char*>(&length), 8) + text +
                    source.substr(8 + source_header_length(source)));
  }
  static std::uint64_t source_header_length(const std::string& source) {
    std::uint64_t length = 0;
    std::memcpy(&length, source.data(), 8);
    return length;
  }
  /// Weights that name ten classes.
  void write_named_weights() const {
    rewrite_weights("named.safetensors", [](nlohmann::json& header) {
      auto gala = nlohmann::json::parse(header["__metadata__"]["gala"].get<std::string>());
      gala["classes"] = {"a", "bird", "c", "d", "e", "dog", "g", "h", "i", "j"};
      header["__metadata__"]["gala"] = gala.dump();
    });
  }

  const std::string adapt_ = "adapt --weights source.safetensors --batch-size 4 --data ";
};

TEST_F(PictureFiles, ThatBecomeShorterLoseNothingOfTheRun) {
  write_pictures("x.npy", 600);
  const std::string whole = read("x.npy");
  const std::string flags =
      "adapt --weights source.safetensors --data arrays:images=x.npy --batch-size 2 --loss entropy "
      "--deterministic --trace NAME.jsonl --predictions NAME.csv";
  const auto named = [&](const std::string& name) {
    std::string text = flags;
    for (std::size_t at; (at = text.find("NAME")) != std::string::npos;) text.replace(at, 4, name);
    return text;
  };
  const Ending straight = run(named("a"));
  ASSERT_EQ(straight.code, 0) << straight.err;

  const std::string saving = named("b") + " --save-state b.state";
  Ending cut;
  for (int attempt = 0; attempt < 5 && cut.code != 2 && cut.signal == 0; ++attempt) {
    write("x.npy", whole);
    std::filesystem::remove(path("b.state"));
    const pid_t process = start(words(saving + " --save-every 1"), "", -1);
    wait_until(process, "b.state");
    std::filesystem::resize_file(path("x.npy"), 20'000);
    cut = wait_for(process);
  }
  ASSERT_EQ(cut.signal, 0) << "ended by a signal";
  ASSERT_EQ(cut.code, 2) << cut.err;
  EXPECT_CONTAINS(cut.err, "error: x.npy: the file became shorter while it was read");
  EXPECT_CONTAINS(cut.err, "to go on, give the same flags and --resume b.state");
  EXPECT_GT(read("b.csv").size(), 30U);

  write("x.npy", whole);
  const Ending resumed = run(saving + " --resume b.state");
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(read("a.csv"), read("b.csv"));
  EXPECT_EQ(read("a.jsonl"), read("b.jsonl"));
  EXPECT_EQ(straight.out, resumed.out);
}

TEST_F(PictureFiles, ThatCannotBeReadNameTheFlagThatLeavesThemOut) {
  write_png("photos/1.png", 1);
  write("photos/2.png", "not a picture");
  const Ending ending = run(adapt_ + "folder:path=photos");
  EXPECT_EQ(ending.code, 2);
  EXPECT_CONTAINS(ending.err, "photos/2.png: neither a JPEG nor a PNG file");
  EXPECT_CONTAINS(ending.err, "--skip-unreadable");
  EXPECT_EQ(run(adapt_ + "folder:path=photos --skip-unreadable").code, 0);
}

TEST_F(PictureFiles, AreNamedInThePredictions) {
  write_png("pho,tos/a\"b.png", 1);
  write_png("pho,tos/plain.png", 2);
  ASSERT_EQ(run(adapt_ + "folder:path=\"pho,tos\" --predictions p.csv").code, 0);
  const auto lines = words(read("p.csv"));
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0], "index,prediction,confidence,file");
  EXPECT_TRUE(lines[1].ends_with(",\"pho,tos/a\"\"b.png\"")) << lines[1];
  EXPECT_TRUE(lines[2].ends_with(",\"pho,tos/plain.png\"")) << lines[2];

  for (int c = 0; c < 10; ++c) write_png(fmt::format("labelled/{}/x.png", c), 1);
  ASSERT_EQ(run(adapt_ + "folder:path=labelled --predictions q.csv").code, 0);
  const auto labelled = words(read("q.csv"));
  ASSERT_EQ(labelled.size(), 11U);
  EXPECT_EQ(labelled[0], "index,prediction,confidence,label,file");
  EXPECT_TRUE(labelled[10].ends_with(",9,labelled/9/x.png")) << labelled[10];
}

TEST_F(PictureFiles, InAFewClassFoldersHaveThreeWaysToAnswer) {
  write_png("photos/bird/1.png", 1);
  write_png("photos/dog/1.png", 2);
  std::filesystem::create_directories(path("photos/__pycache__"));
  const Ending refused = run(adapt_ + "folder:path=photos");
  EXPECT_EQ(refused.code, 2);
  for (const char* part :
       {"folder has 2 classes, but the head of wide_resnet has 10", "labels=none", "labels=names",
        "these name none", "classes=FILE", "since they hold no picture: __pycache__"}) {
    EXPECT_CONTAINS(refused.err, part);
  }
  const Ending unlabelled = run(adapt_ + "folder:path=photos,labels=none");
  ASSERT_EQ(unlabelled.code, 0) << unlabelled.err;
  EXPECT_EQ(unlabelled.out.find("accuracy"), std::string::npos);
  EXPECT_CONTAINS(unlabelled.out, "answered   2 images");

  EXPECT_CONTAINS(run(adapt_ + "folder:path=photos,labels=names").err,
                  "labels=names needs weights that name their classes");
  write_named_weights();
  const Ending named =
      run("adapt --weights named.safetensors --predictions n.csv --data "
          "folder:path=photos,labels=names");
  ASSERT_EQ(named.code, 0) << named.err;
  EXPECT_CONTAINS(named.err, "since they hold no picture: __pycache__");
  EXPECT_TRUE(words(read("n.csv"))[2].ends_with(",5,photos/dog/1.png")) << read("n.csv");

  write("classes.json", R"({"dog": 7, "bird": 2})");
  const Ending mapped = run(adapt_ + "folder:path=photos,classes=classes.json --predictions m.csv");
  ASSERT_EQ(mapped.code, 0) << mapped.err;
  EXPECT_TRUE(words(read("m.csv"))[2].ends_with(",7,photos/dog/1.png")) << read("m.csv");
}

TEST_F(PictureFiles, OfWeightsMayHaveTheNamesOfAWrapper) {
  rewrite_weights("wrapped.safetensors", [](nlohmann::json& header) {
    nlohmann::json wrapped;
    for (const auto& [name, value] : header.items()) {
      wrapped[name == "__metadata__" ? name : "model." + name] = value;
    }
    header = wrapped;
  });
  write_pictures("x.npy", 8);
  const Ending plain = run(adapt_ + "arrays:images=x.npy");
  const Ending wrapped =
      run("adapt --weights wrapped.safetensors --batch-size 4 --data "
          "arrays:images=x.npy");
  ASSERT_EQ(wrapped.code, 0) << wrapped.err;
  EXPECT_EQ(wrapped.out, plain.out);
  EXPECT_CONTAINS(wrapped.err, "the prefix \"model.\" is taken off the names of its tensors");
}

TEST_F(PictureFiles, OfFloatsAreMeasured) {
  write_planes("x.npy", 8);
  const Ending healthy = run(adapt_ + "arrays:images=x.npy");
  ASSERT_EQ(healthy.code, 0) << healthy.err;
  EXPECT_EQ(healthy.err.find("float pictures"), std::string::npos) << healthy.err;
  const std::string planes = read("x.npy");
  std::string large = planes;
  for (std::size_t at = large.size() - 4 * 3072; at < large.size(); at += 4) {
    float value = 0;
    std::memcpy(&value, large.data() + at, 4);
    value *= 255;
    std::memcpy(large.data() + at, &value, 4);
  }
  write("large.npy", large);
  const Ending warned = run(adapt_ + "arrays:images=large.npy");
  ASSERT_EQ(warned.code, 0) << warned.err;
  EXPECT_CONTAINS(warned.err, "warning: the float pictures hold values from 0 to 255");
  EXPECT_EQ(warned.err.find("hold values"), warned.err.rfind("hold values"));
  write_planes("nan.npy", 8, 3);
  EXPECT_CONTAINS(run(adapt_ + "arrays:images=nan.npy").err,
                  "values that are not finite numbers; the first: nan.npy[3]");
}

}  // namespace
}  // namespace gala::test
