#include "gala/data/imagenet.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <numeric>
#include <optional>

#include "gala/data/array_dataset.h"
#include "gala/data/class_map.h"
#include "gala/data/image_folder.h"
#include "gala/data/imagenet_crop.h"

namespace gala {
namespace {

namespace fs = std::filesystem;

/// 0 to 999, written without a zero before it.
std::optional<std::int64_t> number_in(const std::string& name) {
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool whole = problem == std::errc() && end == name.data() + name.size();
  if (!whole || number < 0 || number >= kImageNetClasses || std::to_string(number) != name) {
    return std::nullopt;
  }
  return number;
}

std::vector<std::int64_t> read_class_file(const std::vector<std::string>& folders,
                                          const ImageNetOptions& options) {
  const auto labels =
      read_class_map(options.classes).numbers_of(folders, options.path, options.classes);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < kImageNetClasses) continue;
    fail<ConfigError>("{}: \"{}\" has number {} (expected 0 to {})", options.classes, folders[i],
                      labels[i], kImageNetClasses - 1);
  }
  return labels;
}

/// The class of each folder.
std::vector<std::int64_t> classes_of(const std::vector<std::string>& folders,
                                     const ImageNetOptions& options) {
  if (!options.classes.empty()) return read_class_file(folders, options);
  std::vector<std::int64_t> labels;
  for (const std::string& folder : folders) {
    const auto number = number_in(folder);
    if (number) labels.push_back(*number);
  }
  if (labels.size() == folders.size()) return labels;
  if (std::cmp_equal(folders.size(), kImageNetClasses) && labels.empty()) {
    labels.resize(folders.size());
    std::iota(labels.begin(), labels.end(), 0);
    return labels;
  }
  const auto other = std::find_if(folders.begin(), folders.end(),
                                  [](const std::string& name) { return !number_in(name); });
  fail<ConfigError>(
      "{}: {} folders, among them \"{}\", are not ImageNet's classes (expected folders named 0 to "
      "999, "
      "or all 1,000 named by their WordNet ids, such as n01440764, or classes=FILE that numbers "
      "the names)",
      options.path, folders.size(), *other);
}

std::string file_name(const LabelledFile& file) {
  return fs::path(file.path).filename().string();
}

}  // namespace

std::shared_ptr<const Dataset> open_imagenet_pictures(const ImageNetOptions& options,
                                                      std::string_view set) {
  require_option(set, "path", options.path);
  const auto folders = open_class_folders(options.path);
  if (folders->class_names().empty()) {
    fail<ConfigError>("{}: has no class folders (expected 0 to 999, or 1,000 WordNet ids)",
                      options.path);
  }
  const std::vector<std::int64_t> labels = classes_of(folders->class_names(), options);
  const fs::path root = options.path;
  std::vector<LabelledFile> files;
  for (std::int64_t i = 0; i < folders->size(); ++i) {
    files.push_back({fs::path(folders->item_name(i)).lexically_relative(root).string(),
                     labels[static_cast<std::size_t>(folders->label(i))]});
  }
  std::stable_sort(files.begin(), files.end(), [](const LabelledFile& a, const LabelledFile& b) {
    return file_name(a) < file_name(b);
  });
  return std::make_shared<ImageNetCrop>(std::make_shared<FileDataset>(
      root, std::move(files), std::vector<std::string>{}, kImageNetClasses));
}

std::vector<Domain> open_imagenet(const ImageNetOptions& options) {
  return {{"val", open_imagenet_pictures(options, "imagenet")}};
}

}  // namespace gala
