#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "gala/data/dataset.h"

namespace gala {

enum class TinyImageNetSplit { kTrain, kVal };
constexpr std::array<std::string_view, 2> enum_names(TinyImageNetSplit) {
  return {"train", "val"};
}

struct TinyImageNetOptions {
  std::string path;
  TinyImageNetSplit split = TinyImageNetSplit::kVal;
  static constexpr std::array<std::string_view, 1> kPaths = {"path"};
  template <class Visitor>
  static void visit(Visitor&& option) {
    option("path", &TinyImageNetOptions::path, "folder tiny-imagenet-200");
    option("split", &TinyImageNetOptions::split, "which part");
  }
};

/// Labels are the places of the class codes (n01443537, ...) in byte order. `val` comes in the order of
/// val_annotations.txt, or as class folders where somebody sorted it into them.
std::vector<Domain> open_tiny_imagenet(const TinyImageNetOptions& options);

}  // namespace gala
