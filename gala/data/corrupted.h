#pragma once
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gala/data/corruption/corruption.h"
#include "gala/data/dataset.h"

namespace gala {

/// How pictures are corrupted, beside which corruption it is.
struct CorruptionSettings {
  CorruptionSet set = CorruptionSet::kCifar;
  std::uint64_t seed = 0;
  std::shared_ptr<const FrostTextures> textures = nullptr;  ///< none: made ones
  int quality = 0;  ///< of JPEG, there and back, when all is done; 0: none
};

/// Another set of pictures under one corruption, made while reading. Item i is always drawn the same way,
/// from (seed, corruption, severity, i). Pictures of another size than the set's are refused when they
/// are read, with a ConfigError.
class CorruptedDataset : public Dataset {
 public:
  CorruptedDataset(std::shared_ptr<const Dataset> clean, Corruption corruption, int severity,
                   const CorruptionSettings& settings);
  std::int64_t size() const override { return clean_->size(); }
  std::int64_t label(std::int64_t index) const override { return clean_->label(index); }
  void read(std::int64_t index, Image& into) const override;
  std::string item_name(std::int64_t index) const override { return clean_->item_name(index); }
  bool in_files() const override { return clean_->in_files(); }
  void hash_item(std::int64_t index, Sha256& hash) const override;

 private:
  std::shared_ptr<const Dataset> clean_;
  Corruptor corruptor_;
  int quality_;
  std::string origin_;  ///< what, beside the clean picture, determines the pixels
};

/// How many severities an array holds.
enum class CorruptionLayout { kAuto, kOne, kFive };
constexpr std::array<std::string_view, 3> enum_names(CorruptionLayout) {
  return {"auto", "one", "five"};
}

struct CorruptedCifarOptions {
  std::string path;
  std::string corruption = "all";
  std::string severity = "5";
  CorruptionLayout layout = CorruptionLayout::kAuto;
  bool generate = false;
  std::int64_t seed = 0;
  std::string frost;
  static constexpr std::array<std::string_view, 2> kPaths = {"path", "frost"};
  template <class Visitor>
  static void visit(Visitor&& option) {
    option("path", &CorruptedCifarOptions::path,
           "folder with NAME.npy for each corruption and labels.npy; with generate=yes that of the "
           "clean set");
    option("corruption", &CorruptedCifarOptions::corruption,
           "names with commas, all (the 15 of the benchmark) or extra (the other 4)");
    option("severity", &CorruptedCifarOptions::severity, "1 to 5, several with commas, or all");
    option("layout", &CorruptedCifarOptions::layout,
           "severities in an array: auto sees five where labels.npy repeats itself five times");
    option("generate", &CorruptedCifarOptions::generate,
           "make the pictures from the clean test set");
    option("seed", &CorruptedCifarOptions::seed, "of generate");
    option("frost", &CorruptedCifarOptions::frost,
           "of generate: folder with frost photographs; none: made textures");
  }
};

/// One domain for each corruption and severity, severities innermost, named "fog" or, where several
/// severities are asked for, "fog_5".
std::vector<Domain> open_cifar10c(const CorruptedCifarOptions& options);
std::vector<Domain> open_cifar100c(const CorruptedCifarOptions& options);

struct CorruptedImageNetOptions {
  std::string path;
  std::string corruption = "all";
  std::string severity = "5";
  bool generate = false;
  std::int64_t seed = 0;
  std::string frost;
  std::int64_t quality = 85;
  std::string classes;
  static constexpr std::array<std::string_view, 3> kPaths = {"path", "frost", "classes"};
  template <class Visitor>
  static void visit(Visitor&& option) {
    option(
        "path", &CorruptedImageNetOptions::path,
        "folder with NAME/SEVERITY/CLASS/ for each corruption; with generate=yes that of the clean "
        "validation pictures");
    option("corruption", &CorruptedImageNetOptions::corruption,
           "names with commas, all (the 15 of the benchmark) or extra (the other 4)");
    option("severity", &CorruptedImageNetOptions::severity, "1 to 5, several with commas, or all");
    option("generate", &CorruptedImageNetOptions::generate,
           "make the pictures from the clean ones, while they are read");
    option("seed", &CorruptedImageNetOptions::seed, "of generate");
    option("frost", &CorruptedImageNetOptions::frost,
           "of generate: folder with frost photographs; none: made textures");
    option("quality", &CorruptedImageNetOptions::quality,
           "of generate: JPEG quality at the end, 85 as the published files; 0: none");
    option("classes", &CorruptedImageNetOptions::classes, "as in the set imagenet");
  }
};

/// ImageNet under corruptions, a domain for each corruption and severity, as above: the published folders,
/// or made from the clean pictures of open_imagenet().
std::vector<Domain> open_imagenetc(const CorruptedImageNetOptions& options);

/// The corruptions a word list names; "all" and "extra" stand for their groups. Throws ConfigError.
std::vector<Corruption> parse_corruptions(std::string_view text);
/// "all" or numbers from 1 to 5 with commas. Throws ConfigError.
std::vector<int> parse_severities(std::string_view text);
/// The pictures of a folder as frost textures for pictures of this set's size.
std::shared_ptr<const FrostTextures> read_frost_textures(const std::string& folder,
                                                         CorruptionSet set = CorruptionSet::kCifar);

}  // namespace gala
