#pragma once
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "gala/data/array_dataset.h"
#include "gala/data/cifar.h"

namespace gala {

/// An array of bytes as MNIST's files hold it.
struct IdxArray {
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> values;
};

/// Reads an IDX file of unsigned bytes, plain or gzip (told by content). Throws FormatError.
IdxArray read_idx(const std::filesystem::path& path);

struct MnistOptions {
  std::string path;
  Split split = Split::kTest;
  static constexpr std::array<std::string_view, 1> kPaths = {"path"};
  template <class Visitor>
  static void visit(Visitor&& option) {
    option("path", &MnistOptions::path, "folder with the IDX files, plain or gzip");
    option("split", &MnistOptions::split, "which files");
  }
};
struct FashionMnistOptions {
  std::string path = "/usr/share/datasets/fashion-mnist";
  Split split = Split::kTest;
  static constexpr std::array<std::string_view, 1> kPaths = {"path"};
  template <class Visitor>
  static void visit(Visitor&& option) {
    option("path", &FashionMnistOptions::path,
           "folder with the IDX files; Debian's package dataset-fashion-mnist brings them");
    option("split", &FashionMnistOptions::split, "which files");
  }
};
std::vector<Domain> open_mnist(const MnistOptions& options);
std::vector<Domain> open_fashion_mnist(const FashionMnistOptions& options);

}  // namespace gala
