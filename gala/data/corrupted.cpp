#include "gala/data/corrupted.h"

#include <algorithm>
#include <filesystem>

#include "gala/data/array_dataset.h"
#include "gala/data/cifar.h"
#include "gala/data/corruption/jpeg_round_trip.h"
#include "gala/data/image_folder.h"
#include "gala/data/imagenet.h"
#include "gala/data/stream_order.h"

namespace gala {
namespace {

namespace fs = std::filesystem;

/// True when the labels are five times the same list.
bool repeats_five_times(const std::vector<std::int64_t>& labels) {
  if (labels.size() % 5 != 0) return false;
  const auto period = static_cast<std::ptrdiff_t>(labels.size() / 5);
  return std::equal(labels.begin() + period, labels.end(), labels.begin());
}

bool holds_five(const PictureArray& pictures, const std::vector<std::int64_t>& labels,
                CorruptionLayout layout) {
  if (layout != CorruptionLayout::kAuto) {
    const bool five = layout == CorruptionLayout::kFive;
    if (five && pictures.count % 5 != 0) {
      fail<ConfigError>("{}: {} rows are not five severities", pictures.path, pictures.count);
    }
    return five;
  }
  if (!labels.empty()) return repeats_five_times(labels);
  if (pictures.count == 50'000 || pictures.count == 10'000) return pictures.count == 50'000;
  fail<ConfigError>(
      "{}: without labels.npy, layout=one or layout=five must say what its {} rows are",
      pictures.path, pictures.count);
}

std::string domain_name(Corruption corruption, int severity, bool several) {
  return several ? fmt::format("{}_{}", corruption_name(corruption), severity)
                 : std::string(corruption_name(corruption));
}

std::vector<Domain> read_arrays(const CorruptedCifarOptions& options,
                                const std::vector<Corruption>& corruptions,
                                const std::vector<int>& severities, int classes) {
  const fs::path folder = options.path;
  std::vector<Domain> domains;
  for (Corruption corruption : corruptions) {
    const fs::path path = folder / (std::string(corruption_name(corruption)) + ".npy");
    if (!fs::exists(path)) fail<ConfigError>("{}: is missing", path.string());
    const PictureArray pictures = read_picture_array(path);
    std::vector<std::int64_t> labels;
    const fs::path labels_path = folder / "labels.npy";
    if (fs::exists(labels_path)) labels = read_labels(labels_path, pictures.count);
    const bool five = holds_five(pictures, labels, options.layout);
    if (!five && severities.size() > 1) {
      fail<ConfigError>("{}: holds one severity, {} are asked for", path.string(),
                        severities.size());
    }
    const std::int64_t rows = five ? pictures.count / 5 : pictures.count;
    for (int severity : severities) {
      const std::int64_t first = five ? (severity - 1) * rows : 0;
      std::vector<std::int64_t> part;
      if (!labels.empty()) part.assign(labels.begin() + first, labels.begin() + first + rows);
      domains.push_back({domain_name(corruption, severity, severities.size() > 1),
                         std::make_shared<ArrayDataset>(pictures.rows(first, rows), std::move(part),
                                                        cifar_class_names(classes)),
                         std::string(corruption_name(corruption)), severity});
    }
  }
  return domains;
}

/// One domain for each corruption and severity of a clean set.
std::vector<Domain> generate(const std::shared_ptr<const Dataset>& clean,
                             CorruptionSettings settings, const std::string& frost,
                             const std::vector<Corruption>& corruptions,
                             const std::vector<int>& severities) {
  if (!frost.empty()) {
    settings.textures = read_frost_textures(frost, settings.set);
  } else if (std::find(corruptions.begin(), corruptions.end(), Corruption::kFrost) !=
             corruptions.end()) {
    settings.textures = FrostTextures::procedural(static_cast<int>(corruption_side(settings.set)));
  }
  std::vector<Domain> domains;
  for (Corruption corruption : corruptions) {
    for (int severity : severities) {
      domains.push_back({domain_name(corruption, severity, severities.size() > 1),
                         std::make_shared<CorruptedDataset>(clean, corruption, severity, settings),
                         std::string(corruption_name(corruption)), severity});
    }
  }
  return domains;
}

std::vector<Domain> open_corrupted(std::string_view set, const CorruptedCifarOptions& options,
                                   int classes) {
  require_option(set, "path", options.path);
  const auto corruptions = parse_corruptions(options.corruption);
  const auto severities = parse_severities(options.severity);
  if (!options.generate) return read_arrays(options, corruptions, severities, classes);
  return generate(open_cifar(options.path, classes, Split::kTest),
                  {.seed = static_cast<std::uint64_t>(options.seed)}, options.frost, corruptions,
                  severities);
}

}  // namespace

CorruptedDataset::CorruptedDataset(std::shared_ptr<const Dataset> clean, Corruption corruption,
                                   int severity, const CorruptionSettings& settings)
    : clean_(std::move(clean)),
      corruptor_(corruption, severity, settings.seed, settings.textures, settings.set),
      quality_(settings.quality),
      origin_(fmt::format("corruption {} {} {}\n", corruption_name(corruption), severity,
                          settings.seed)) {
  set_classes(clean_->classes(), clean_->class_names());
  if (settings.set != CorruptionSet::kCifar) origin_ += format_value(settings.set) + "\n";
  if (quality_ != 0) origin_ += fmt::format("quality {}\n", quality_);
  if (corruption == Corruption::kFrost && settings.textures) {
    Sha256 hash;
    for (const FrostTexture& texture : settings.textures->textures()) {
      hash.update(texture.pixels.data(), texture.pixels.size());
    }
    origin_ += hash.hex();
  }
}

void CorruptedDataset::read(std::int64_t index, Image& into) const {
  clean_->read(index, into);
  const std::int64_t side = corruption_side(corruptor_.set());
  if (into.height != side || into.width != side || into.pixels.empty()) {
    fail<ConfigError>(
        "{}: {}x{} {} cannot be corrupted (expected {}x{} RGB bytes, which the constants "
        "of the set {} are for)",
        clean_->item_name(index), into.height, into.width,
        into.pixels.empty() ? "floats" : "pixels", side, side, format_value(corruptor_.set()));
  }
  const std::vector<std::uint8_t> clean = into.pixels;
  corruptor_.apply(index, clean, into.pixels);
  if (quality_ == 0) return;
  jpeg_round_trip(into.pixels.data(), static_cast<int>(side), quality_, into.pixels.data());
}

void CorruptedDataset::hash_item(std::int64_t index, Sha256& hash) const {
  hash.update(origin_);
  clean_->hash_item(index, hash);
}

std::vector<Corruption> parse_corruptions(std::string_view text) {
  constexpr std::size_t count = enum_names(Corruption{}).size();
  std::vector<Corruption> found;
  for (const std::string& word : split_names(text)) {
    if (word != "all" && word != "extra") {
      found.push_back(parse_corruption(word));
      continue;
    }
    const std::size_t begin = word == "all" ? 0 : kBenchmarkCorruptions;
    const std::size_t end = word == "all" ? kBenchmarkCorruptions : count;
    for (std::size_t i = begin; i < end; ++i) found.push_back(static_cast<Corruption>(i));
  }
  return found;
}

std::vector<int> parse_severities(std::string_view text) {
  if (text == "all") return {1, 2, 3, 4, 5};
  std::vector<int> found;
  for (const std::string& word : split_names(text)) {
    int severity = 0;
    if (!parse_value(word, severity) || severity < 1 || severity > kSeverities) {
      fail<ConfigError>("severity cannot be \"{}\" (expected 1 to 5, several with commas, or all)",
                        word);
    }
    found.push_back(severity);
  }
  return found;
}

std::shared_ptr<const FrostTextures> read_frost_textures(const std::string& folder,
                                                         CorruptionSet set) {
  const std::vector<Domain> domains = open_folder({.path = folder});
  const Dataset& data = *domains.front().data;
  std::vector<FrostTexture> photographs;
  Image image;
  for (std::int64_t i = 0; i < data.size(); ++i) {
    data.read(i, image);
    photographs.push_back({image.height, image.width, image.pixels});
  }
  return FrostTextures::from_photographs(photographs, static_cast<int>(corruption_side(set)));
}

std::vector<Domain> open_imagenetc(const CorruptedImageNetOptions& options) {
  require_option("imagenetc", "path", options.path);
  const auto corruptions = parse_corruptions(options.corruption);
  const auto severities = parse_severities(options.severity);
  if (options.quality < 0 || options.quality > 100) {
    fail<ConfigError>("imagenetc: quality cannot be {} (expected 1 to 100, or 0 for none)",
                      options.quality);
  }
  if (options.generate) {
    return generate(open_imagenet_pictures({options.path, options.classes}, "imagenetc"),
                    {.set = CorruptionSet::kImageNet,
                     .seed = static_cast<std::uint64_t>(options.seed),
                     .quality = static_cast<int>(options.quality)},
                    options.frost, corruptions, severities);
  }
  std::vector<Domain> domains;
  for (Corruption corruption : corruptions) {
    for (int severity : severities) {
      const std::string name(corruption_name(corruption));
      const fs::path folder = fs::path(options.path) / name / std::to_string(severity);
      if (!fs::is_directory(folder)) {
        fail<ConfigError>("{}: is missing (generate=yes makes the pictures from the clean ones)",
                          folder.string());
      }
      domains.push_back({domain_name(corruption, severity, severities.size() > 1),
                         open_imagenet_pictures({folder.string(), options.classes}, "imagenetc"),
                         name, severity});
    }
  }
  return domains;
}

std::vector<Domain> open_cifar10c(const CorruptedCifarOptions& options) {
  return open_corrupted("cifar10c", options, 10);
}

std::vector<Domain> open_cifar100c(const CorruptedCifarOptions& options) {
  return open_corrupted("cifar100c", options, 100);
}

}  // namespace gala
