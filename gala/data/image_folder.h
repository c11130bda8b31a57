#pragma once
#include <filesystem>
#include <memory>
#include <string>
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
  std::int64_t size() const override { return static_cast<std::int64_t>(files_.size()); }
  std::int64_t label(std::int64_t index) const override { return file(index).label; }
  void read(std::int64_t index, Image& into) const override;
  std::string item_name(std::int64_t index) const override;
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

struct FolderOptions {
  std::string path;
  template <class Visitor>
  static void visit(Visitor&& option) {
    option("path", &FolderOptions::path,
           "folder with one folder a class, or with unlabelled files");
  }
};
std::vector<Domain> open_folder(const FolderOptions& options);

}  // namespace gala
