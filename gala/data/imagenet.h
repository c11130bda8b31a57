#pragma once
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gala/data/dataset.h"

namespace gala {

inline constexpr std::int64_t kImageNetClasses = 1000;

struct ImageNetOptions {
  std::string path;
  std::string classes;
  static constexpr std::array<std::string_view, 2> kPaths = {"path", "classes"};
  template <class Visitor>
  static void visit(Visitor&& option) {
    option("path", &ImageNetOptions::path,
           "folder with a folder for each class: 0 to 999, any of them, or all 1,000 WordNet ids");
    option("classes", &ImageNetOptions::classes,
           "file that numbers the class folders where their names do not: a name a line, or JSON");
  }
};

/// Pictures of ImageNet's 1,000 classes, cropped to 224 x 224 as ImageNet-C's were. They come in byte order
/// of the files' names, whatever their class: so the validation pictures come by their numbers, in which
/// classes are mixed. The class of a folder is its number, or its place among 1,000 names in byte order, or
/// what the file says. Throws ConfigError for folders that are none of these.
std::shared_ptr<const Dataset> open_imagenet_pictures(const ImageNetOptions& options,
                                                      std::string_view set);
std::vector<Domain> open_imagenet(const ImageNetOptions& options);

}  // namespace gala
