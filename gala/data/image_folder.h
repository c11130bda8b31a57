#pragma once
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gala/data/dataset.h"

namespace gala {

/// A picture file and its label.
struct LabelledFile {
  std::string path;  ///< below the set's folder
  std::int64_t label = -1;
};

/// Picture files below one folder.
class FileDataset : public Dataset {
 public:
  FileDataset(std::filesystem::path root, std::vector<LabelledFile> files,
              std::vector<std::string> class_names);
  /// Of so many classes, whether all of them have names or none.
  FileDataset(std::filesystem::path root, std::vector<LabelledFile> files,
              std::vector<std::string> class_names, std::int64_t classes);
  std::int64_t size() const override { return static_cast<std::int64_t>(files_.size()); }
  std::int64_t label(std::int64_t index) const override { return file(index).label; }
  void read(std::int64_t index, Image& into) const override;
  std::string item_name(std::int64_t index) const override;
  bool in_files() const override { return true; }
  void hash_item(std::int64_t index, Sha256& hash) const override;

 private:
  const LabelledFile& file(std::int64_t index) const {
    return files_[static_cast<std::size_t>(index)];
  }

  std::filesystem::path root_;
  std::vector<LabelledFile> files_;
};

/// The names of the folders inside a folder, in byte order; names that begin with a dot are left
/// out. Throws ConfigError when it cannot be listed.
std::vector<std::string> folders_inside(const std::filesystem::path& path);

/// A folder with one folder for each class: classes in byte order of their names, in each class the
/// files of all folders below, in byte order of folder, then name (as torchvision's ImageFolder). A
/// picture is what ends, in any case, as one (.jpg .jpeg .png .ppm .bmp .pgm .tif .tiff .webp);
/// those that are neither JPEG nor PNG fail when they are read. Throws ConfigError when two classes
/// differ only in case, or when pictures lie beside class folders.
std::shared_ptr<const Dataset> open_class_folders(const std::filesystem::path& path);

/// Where the labels of a folder come from.
enum class FolderLabels { kFolders, kNames, kNone };
constexpr std::array<std::string_view, 3> enum_names(FolderLabels) {
  return {"folders", "names", "none"};
}

struct FolderOptions {
  std::string path;
  FolderLabels labels = FolderLabels::kFolders;
  std::string classes = {};
  static constexpr std::array<std::string_view, 2> kPaths = {"path", "classes"};
  template <class Visitor>
  static void visit(Visitor&& option) {
    option("path", &FolderOptions::path,
           "folder with one folder a class, or with unlabelled files");
    option("labels", &FolderOptions::labels,
           "folders: a class folder each, numbered in byte order; names: the class of the weights "
           "that has the folder's name; none: every picture below, unlabelled");
    option("classes", &FolderOptions::classes,
           "file that numbers the class folders: a name a line, or JSON: a list of names or "
           "{name: number}; none: byte order");
  }
  /// Not written out where they have their defaults: `folder:path=DIR` stays what it was called.
  static constexpr std::array<std::string_view, 2> kQuiet = {"labels", "classes"};
  bool by_name() const { return labels == FolderLabels::kNames; }
};
/// Folders without a picture are no classes, and a note says so.
std::vector<Domain> open_folder(const FolderOptions& options);

}  // namespace gala
