#include "gala/data/image_folder.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "gala/data/array_dataset.h"

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

/// The picture files in `folder` itself, in byte order.
std::vector<std::string> pictures_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : list(folder)) {
    if (is_picture_name(entry.path()) && !entry.is_directory()) {
      names.push_back(entry.path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// `below` and all folders under it, relative to `root`, in byte order of the whole path.
void collect_folders(const fs::path& root, const std::string& below,
                     std::vector<std::string>& folders, int depth) {
  if (depth > 32) fail<ConfigError>("{}: folders are nested too deep (a loop?)", root.string());
  folders.push_back(below);
  for (const auto& entry : list(root / below)) {
    if (entry.is_directory()) {
      collect_folders(root, below + "/" + entry.path().filename().string(), folders, depth + 1);
    }
  }
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
    if (!name.starts_with('.') && entry.is_directory()) names.push_back(name);
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
    std::vector<std::string> folders;
    collect_folders(path, classes[label], folders, 0);
    std::sort(folders.begin(), folders.end());
    for (const std::string& folder : folders) {
      for (const std::string& name : pictures_in(path / folder)) {
        files.push_back({folder + "/" + name, static_cast<std::int64_t>(label)});
      }
    }
  }
  return std::make_shared<FileDataset>(path, std::move(files), std::move(classes));
}

std::vector<Domain> open_folder(const FolderOptions& options) {
  require_option("folder", "path", options.path);
  const fs::path path = options.path;
  fs::path whole = fs::absolute(path).lexically_normal();
  if (whole.filename().empty()) whole = whole.parent_path();
  const std::string name = whole.filename().string();
  if (!folders_inside(path).empty()) return {{name, open_class_folders(path)}};
  std::vector<LabelledFile> files;
  for (std::string& file : pictures_in(path)) files.push_back({std::move(file), -1});
  return {
      {name, std::make_shared<FileDataset>(path, std::move(files), std::vector<std::string>{})}};
}

}  // namespace gala
