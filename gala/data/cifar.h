#pragma once
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gala/data/dataset.h"

namespace gala {

enum class Split { kTest, kTrain };
constexpr std::array<std::string_view, 2> enum_names(Split) {
  return {"test", "train"};
}

/// CIFAR-10 or CIFAR-100 in any of its layouts, found below `path`:
/// - the official binary files (also in cifar-10-batches-bin/ or cifar-100-binary/),
/// - one PNG a batch, a row of 1024 pixels for each picture, with the labels in {train,test}_lables.json,
/// - class folders of pictures in train/ and test/, in an order drawn once and for all;
/// or, where `path` is a file NAME.png, such a batch alone with its labels in NAME_labels.npy.
/// Throws ConfigError when there is none of them.
std::shared_ptr<const Dataset> open_cifar(const std::filesystem::path& path, int classes,
                                          Split split);

struct CifarOptions {
  std::string path;
  Split split = Split::kTest;
  static constexpr std::array<std::string_view, 1> kPaths = {"path"};
  template <class Visitor>
  static void visit(Visitor&& option) {
    option("path", &CifarOptions::path,
           "folder with the official .bin files, PNG batches or class folders; or one PNG batch");
    option("split", &CifarOptions::split, "which part");
  }
};
std::vector<Domain> open_cifar10(const CifarOptions& options);
std::vector<Domain> open_cifar100(const CifarOptions& options);

/// The names of CIFAR-10's classes, or of CIFAR-100's hundred, in label order.
const std::vector<std::string>& cifar_class_names(int classes);

}  // namespace gala
