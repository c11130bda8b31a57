#include <set>

#include "tests/cli/run_command.h"

namespace gala::test {
namespace {

namespace fs = std::filesystem;

/// The plans in plans/, tried without running anything.
class CommittedPlans : public RunCommand {
 protected:
  /// Paths of all but the training plans.
  static std::set<fs::path> plans() {
    std::set<fs::path> found;
    const fs::path folder = fs::path(GALA_TEST_ASSETS).parent_path() / "plans";
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with("train_") && entry.path().extension() == ".toml") {
        found.insert(entry.path());
      }
    }
    return found;
  }

  /// A miniature of every data set the plans name, below world/data.
  void write_world() const {
    const std::map<std::string, std::vector<std::string>> sets = {
        {"PACS", {"art_painting", "cartoon", "photo", "sketch"}},
        {"VLCS", {"Caltech101", "LabelMe", "SUN09", "VOC2007"}},
        {"terra_incognita", {"location_100", "location_38", "location_43", "location_46"}},
        {"office_home", {"Art", "Clipart", "Product", "Real World"}}};
    std::uint64_t seed = 0;
    for (const auto& [set, environments] : sets) {
      for (const std::string& environment : environments) {
        for (int i = 0; i < 6; ++i) {
          write_png(fmt::format("world/data/{}/{}/class{}/{}.png", set, environment, i % 2, i),
                    seed++);
        }
      }
    }
    for (const char* name : {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog",
                             "horse", "ship", "truck"}) {
      write_png(fmt::format("world/data/cifar10/test/{}/0.png", name), seed++);
      write_png(fmt::format("world/data/cifar10/train/{}/0.png", name), seed++);
    }
    for (int i = 0; i < 100; ++i) {
      write_png(fmt::format("world/data/cifar100/test/class{:02}/0.png", i), seed++);
    }
    for (const auto& [set, classes] :
         {std::pair{"CIFAR-10-C", 10}, std::pair{"CIFAR-100-C", 100}}) {
      fs::create_directories(path(fmt::format("world/data/{}", set)));
      for (const char* name :
           {"gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur",
            "motion_blur", "zoom_blur", "snow", "frost", "fog", "brightness", "contrast",
            "elastic_transform", "pixelate", "jpeg_compression"}) {
        write_pictures(fmt::format("world/data/{}/{}.npy", set, name), classes, seed++);
      }
      write_labels(fmt::format("world/data/{}/labels.npy", set), classes, classes);
    }
    for (int i = 0; i < 20; ++i) {
      write_png(fmt::format("world/data/imagenet_val/{}/{}.png", 49 * i, i), seed++);
    }
    fs::create_directories(path("world/assets"));
    for (const char* name : {"cifar10_test_2000.png", "cifar10_test_2000_labels.npy"}) {
      fs::copy_file(fs::path(GALA_TEST_ASSETS) / name, path("world/assets") / name);
    }
  }
};

TEST_F(CommittedPlans, AreReadAndMissOnlyDataAndWeights) {
  for (const fs::path& plan : plans()) {
    const Ending dry = run(fmt::format("run {} --store store --dry-run", plan.string()));
    if (plan.filename() == "level_curves.toml") {
      EXPECT_EQ(dry.code, 0) << dry.err;
      EXPECT_CONTAINS(dry.out, "has no runs");
      continue;
    }
    EXPECT_EQ(dry.code, 2) << plan;
    EXPECT_CONTAINS(dry.out, "runs asked for");
    for (const std::string& line : dry.err_lines()) {
      if (!line.starts_with("  - ")) continue;
      const bool absent = line.find("is missing") != std::string::npos ||
                          line.find("No such file or directory") != std::string::npos ||
                          line.find("found neither") != std::string::npos;
      EXPECT_TRUE(absent) << plan << ": " << line;
    }
  }
  EXPECT_FALSE(fs::exists(path("store")));
}

TEST_F(CommittedPlans, LayOutTheirRunsWhenTheDataIsThere) {
  write_world();
  // 96 units of two idle runs and 96 adaptations; 32 of ERM and 4 blocks over 12 settings; 6 shifts of ERM and
  // 7 methods over 12; 2 sets with 2 idle runs, 4 methods and 4 thresholds, both losses.
  const std::map<std::string, int> expected = {{"table1.toml", 96 * 98},
                                               {"heatmap.toml", 32 * 49},
                                               {"table3.toml", 6 * 85},
                                               {"table2.toml", 2 * (2 + 2 * 8)}};
  for (const fs::path& plan : plans()) {
    if (plan.filename() == "level_curves.toml") continue;
    const Ending dry =
        run(fmt::format("run {} --store store --root world --dry-run", plan.string()));
    EXPECT_EQ(dry.code, 2) << plan << " lacks its weights";
    for (const std::string& line : dry.err_lines()) {
      if (!line.starts_with("  - ")) continue;
      EXPECT_CONTAINS(line, "is missing; to make it: gala train ");
    }
    const auto count = expected.find(plan.filename().string());
    if (count != expected.end()) {
      EXPECT_CONTAINS(dry.out, fmt::format("; {} different ones can be made", count->second));
    }
  }
}

}  // namespace
}  // namespace gala::test
