#include "gala/data/image_folder.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "gala/data/array_dataset.h"
#include "gala/data/class_map.h"

namespace gala {
namespace {

namespace fs = std::filesystem;

std::string lower_case(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

bool is_picture_name(const fs::path& path) {
  static constexpr std::array<std::string_view, 9> kEndings = {
      ".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp"};
  const std::string ending = lower_case(path.extension().string());
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
}

fs::directory_iterator list(const fs::path& path) {
  std::error_code error;
  fs::directory_iterator entries(path, error);
  if (error) {
    fail<ConfigError>("{}: cannot be listed as a folder: {}", path.string(), error.message());
  }
  return entries;
}

/// False too for what cannot be told, such as a link that leads to itself.
bool is_folder(const fs::directory_entry& entry) {
  std::error_code ignored;
  return entry.is_directory(ignored);
}

/// The picture files in `folder` itself, in byte order.
std::vector<std::string> pictures_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : list(folder)) {
    if (is_picture_name(entry.path()) && !is_folder(entry)) {
      names.push_back(entry.path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// `below` and all folders under it, relative to `root`.
void collect_folders(const fs::path& root, const std::string& below,
                     std::vector<std::string>& folders, int depth) {
  if (depth > 32) fail<ConfigError>("{}: folders are nested too deep (a loop?)", root.string());
  folders.push_back(below);
  for (const auto& entry : list(root / below)) {
    if (is_folder(entry)) {
      collect_folders(root, below + "/" + entry.path().filename().string(), folders, depth + 1);
    }
  }
}

/// All pictures in `folder` and below, as paths relative to `root`: byte order of folder, then name.
std::vector<std::string> pictures_below(const fs::path& root, const std::string& folder) {
  std::vector<std::string> folders, pictures;
  collect_folders(root, folder, folders, 0);
  std::sort(folders.begin(), folders.end());
  for (const std::string& inside : folders) {
    for (const std::string& name : pictures_in(root / inside)) {
      pictures.push_back(inside + "/" + name);
    }
  }
  return pictures;
}

void refuse_equal_but_for_case(const std::vector<std::string>& names, const fs::path& path) {
  std::map<std::string, std::string> seen;
  for (const std::string& name : names) {
    const auto [first, is_new] = seen.emplace(lower_case(name), name);
    if (!is_new) {
      fail<ConfigError>("{}: the classes \"{}\" and \"{}\" differ only in case", path.string(),
                        first->second, name);
    }
  }
}

}  // namespace

FileDataset::FileDataset(fs::path root, std::vector<LabelledFile> files,
                         std::vector<std::string> class_names)
    : root_(std::move(root)), files_(std::move(files)) {
  const auto classes = static_cast<std::int64_t>(class_names.size());
  set_classes(classes, std::move(class_names));
}

FileDataset::FileDataset(fs::path root, std::vector<LabelledFile> files,
                         std::vector<std::string> class_names, std::int64_t classes)
    : root_(std::move(root)), files_(std::move(files)) {
  set_classes(classes, std::move(class_names));
}

void FileDataset::read(std::int64_t index, Image& into) const {
  const std::string path = item_name(index);
  read_file(path, into.encoded);
  decode_image(into.encoded, path, into);
}

std::string FileDataset::item_name(std::int64_t index) const {
  return (root_ / file(index).path).string();
}

void FileDataset::hash_item(std::int64_t index, Sha256& hash) const {
  std::vector<std::byte> bytes;
  read_file(item_name(index), bytes);
  hash.update(fmt::format("file {} {}\n", file(index).path, bytes.size()));
  hash.update(bytes.data(), bytes.size());
}

std::vector<std::string> folders_inside(const fs::path& path) {
  std::vector<std::string> names;
  for (const auto& entry : list(path)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with('.') && is_folder(entry)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::shared_ptr<const Dataset> open_class_folders(const fs::path& path) {
  std::vector<std::string> classes = folders_inside(path);
  refuse_equal_but_for_case(classes, path);
  if (!classes.empty() && !pictures_in(path).empty()) {
    fail<ConfigError>("{}: pictures lie beside class folders; which is meant?", path.string());
  }
  std::vector<LabelledFile> files;
  for (std::size_t label = 0; label < classes.size(); ++label) {
    for (std::string& file : pictures_below(path, classes[label])) {
      files.push_back({std::move(file), static_cast<std::int64_t>(label)});
    }
  }
  return std::make_shared<FileDataset>(path, std::move(files), std::move(classes));
}

namespace {

/// A class folder and its pictures.
struct ClassFolder {
  std::string name;
  std::vector<std::string> pictures;
};

std::shared_ptr<const Dataset> open_unlabelled(const fs::path& path,
                                               std::vector<std::string> pictures) {
  std::vector<LabelledFile> files;
  for (std::string& picture : pictures) files.push_back({std::move(picture), -1});
  return std::make_shared<FileDataset>(path, std::move(files), std::vector<std::string>{});
}

/// Every picture in the folder and below; folders that begin with a dot are left out.
std::shared_ptr<const Dataset> open_without_labels(const fs::path& path) {
  std::vector<std::string> pictures = pictures_in(path);
  for (const std::string& folder : folders_inside(path)) {
    for (std::string& picture : pictures_below(path, folder)) {
      pictures.push_back(std::move(picture));
    }
  }
  return open_unlabelled(path, std::move(pictures));
}

std::shared_ptr<const Dataset> open_labelled(const FolderOptions& options,
                                             std::vector<ClassFolder> folders) {
  std::vector<std::string> names;
  for (const ClassFolder& folder : folders) names.push_back(folder.name);
  refuse_equal_but_for_case(names, options.path);
  std::vector<std::int64_t> labels(names.size());
  std::iota(labels.begin(), labels.end(), 0);
  auto classes = static_cast<std::int64_t>(names.size());
  if (!options.classes.empty()) {
    const ClassMap map = read_class_map(options.classes);
    labels = map.numbers_of(names, options.path, options.classes);
    classes = map.classes;
    names = map.names;
  }
  std::vector<LabelledFile> files;
  for (std::size_t f = 0; f < folders.size(); ++f) {
    for (std::string& picture : folders[f].pictures) {
      files.push_back({std::move(picture), labels[f]});
    }
  }
  return std::make_shared<FileDataset>(options.path, std::move(files), std::move(names), classes);
}

}  // namespace

std::vector<Domain> open_folder(const FolderOptions& options) {
  require_option("folder", "path", options.path);
  const fs::path path = options.path;
  fs::path whole = fs::absolute(path).lexically_normal();
  if (whole.filename().empty()) whole = whole.parent_path();
  const std::string name = whole.filename().string();
  if (options.labels != FolderLabels::kFolders && !options.classes.empty()) {
    fail<ConfigError>(
        "data set folder: classes={} has no use with labels={} (expected one of them)",
        options.classes, format_value(options.labels));
  }
  if (options.labels == FolderLabels::kNone) return {{name, open_without_labels(path)}};
  std::vector<ClassFolder> folders;
  std::vector<std::string> empty;
  for (const std::string& inside : folders_inside(path)) {
    ClassFolder folder{inside, pictures_below(path, inside)};
    if (folder.pictures.empty()) {
      empty.push_back(inside);
    } else {
      folders.push_back(std::move(folder));
    }
  }
  std::vector<std::string> beside = pictures_in(path);
  if (!folders.empty() && !beside.empty()) {
    fail<ConfigError>(
        "{}: pictures lie beside class folders; which is meant? (labels=none takes all of them, "
        "unlabelled)",
        options.path);
  }
  if (folders.empty()) return {{name, open_unlabelled(path, std::move(beside))}};
  Domain domain{name, open_labelled(options, std::move(folders))};
  if (!empty.empty()) {
    domain.notes.push_back(fmt::format("{}: not taken for classes, since they hold no picture: {}",
                                       options.path, shortened(empty)));
  }
  return {std::move(domain)};
}

}  // namespace gala
