#include "gala/data/tiny_imagenet.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "gala/data/array_dataset.h"
#include "gala/data/image_folder.h"

namespace gala {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> read_codes(const fs::path& path) {
  std::ifstream in(path);
  if (!in) throw FormatError(path.string(), "cannot be opened");
  std::vector<std::string> codes;
  for (std::string code; in >> code;) codes.push_back(code);
  std::sort(codes.begin(), codes.end());
  return codes;
}

std::shared_ptr<const Dataset> open_annotated(const fs::path& folder, const fs::path& annotations,
                                              std::vector<std::string> codes) {
  std::ifstream in(annotations);
  if (!in) throw FormatError(annotations.string(), "cannot be opened");
  std::vector<LabelledFile> files;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string file, code;
    if (!(words >> file)) continue;
    words >> code;
    const auto found = std::lower_bound(codes.begin(), codes.end(), code);
    if (found == codes.end() || *found != code) {
      throw FormatError(annotations.string(),
                        fmt::format("line {}: unknown class code \"{}\"", files.size() + 1, code));
    }
    files.push_back({"images/" + file, found - codes.begin()});
  }
  return std::make_shared<FileDataset>(folder, std::move(files), std::move(codes));
}

}  // namespace

std::vector<Domain> open_tiny_imagenet(const TinyImageNetOptions& options) {
  require_option("tiny_imagenet", "path", options.path);
  const fs::path path = options.path;
  if (options.split == TinyImageNetSplit::kTrain)
    return {{"train", open_class_folders(path / "train")}};
  const fs::path annotations = path / "val" / "val_annotations.txt";
  if (!fs::exists(annotations)) return {{"val", open_class_folders(path / "val")}};
  const fs::path codes = path / "wnids.txt";
  return {{"val",
           open_annotated(path / "val", annotations,
                          fs::exists(codes) ? read_codes(codes) : folders_inside(path / "train"))}};
}

}  // namespace gala
