#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "gala/protocol/protocol.h"

namespace gala {

enum class ContinualSet { kCifar10, kCifar100, kImageNet };
constexpr std::array<std::string_view, 3> enum_names(ContinualSet) {
  return {"cifar10", "cifar100", "imagenet"};
}

/// Continual adaptation as CoTTA runs it: 15 corruptions at severity 5 one after the other, in file
/// order, batches of 200, Adam at 1e-3, batch statistics, one step a batch, never back to the source. On
/// ImageNet as mariodoebler/test-time-adaptation runs it: batches of 64, SGD at 2.5e-4 with Nesterov's
/// momentum .9; the order of the files' names mixes the classes. Forgetting is the drop on the clean test images; a held-out target does not exist. With corruption=none
/// the clean test images are themselves what is adapted to.
class ContinualProtocol : public Protocol {
 public:
  struct Options {
    ContinualSet set = ContinualSet::kCifar10;
    std::string path;
    std::string corruption = "all";
    std::string severity = "5";
    bool generate = false;
    std::int64_t seed = 0;
    std::string frost;
    std::string clean;
    std::int64_t images = 0;
    static constexpr std::array<std::string_view, 3> kPaths = {"path", "frost", "clean"};
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("set", &Options::set, "which set");
      option("path", &Options::path,
             "folder with NAME.npy for each corruption and labels.npy (imagenet: "
             "NAME/SEVERITY/CLASS/); with generate=yes that of the clean set");
      option("corruption", &Options::corruption,
             "names with commas, all (15) or extra (4); none: the clean test set itself");
      option("severity", &Options::severity, "1 to 5, several with commas, or all");
      option("generate", &Options::generate, "make the pictures from the clean test set");
      option("seed", &Options::seed, "of generate");
      option("frost", &Options::frost,
             "of generate: folder with frost photographs; none: made textures");
      option(
          "clean", &Options::clean,
          "clean test set, for forgetting and corruption=none; none: path with generate=yes, else "
          "not measured");
      option("images", &Options::images, "at most so many of each corruption; 0: all");
    }
  };
  explicit ContinualProtocol(const Options& options) : options_(options) {}

  RunDefaults defaults() const override;
  TestBed open() const override;

 private:
  DataSource open_corrupted() const;
  /// Nothing where no folder is named.
  std::optional<DataSource> open_clean() const;

  Options options_;
};

}  // namespace gala
