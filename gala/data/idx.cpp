#include "gala/data/idx.h"

#include <zlib.h>

namespace gala {
namespace {

namespace fs = std::filesystem;

/// A file that zlib reads, packed or plain.
class GzipFile {
 public:
  explicit GzipFile(const fs::path& path) : path_(path.string()) {
    if (fs::is_directory(path)) throw FormatError(path_, "is a folder");
    file_ = gzopen(path_.c_str(), "rb");
    if (!file_) throw FormatError(path_, "cannot be opened");
  }
  ~GzipFile() { gzclose(file_); }
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  void read(std::uint8_t* into, std::size_t count) {
    while (count > 0) {
      const auto wanted = static_cast<unsigned>(std::min<std::size_t>(count, 1 << 20));
      const int got = gzread(file_, into, wanted);
      if (got < 0) throw FormatError(path_, "damaged gzip data");
      if (got == 0) throw FormatError(path_, "the file ends early");
      into += got;
      count -= static_cast<std::size_t>(got);
    }
  }
  bool at_end() {
    std::uint8_t byte = 0;
    const int got = gzread(file_, &byte, 1);
    if (got < 0) throw FormatError(path_, "damaged gzip data");
    return got == 0;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  gzFile file_ = nullptr;
};

/// The file under one of the names it is known by.
fs::path find_idx(const fs::path& folder, const std::string& stem, const std::string& rank) {
  for (const char* dot : {"-", "."}) {
    for (const char* ending : {"", ".gz"}) {
      fs::path path = folder / fmt::format("{}{}{}-ubyte{}", stem, dot, rank, ending);
      if (fs::exists(path)) return path;
    }
  }
  fail<ConfigError>("{}: has no {}-{}-ubyte, plain or .gz", folder.string(), stem, rank);
}

std::vector<Domain> open_idx_folder(const fs::path& folder, Split split, const std::string& name,
                                    std::vector<std::string> class_names) {
  const std::string prefix = split == Split::kTrain ? "train" : "t10k";
  const fs::path images_path = find_idx(folder, prefix + "-images", "idx3");
  const fs::path labels_path = find_idx(folder, prefix + "-labels", "idx1");
  IdxArray images = read_idx(images_path);
  const IdxArray labels = read_idx(labels_path);
  if (images.shape.size() != 3)
    throw FormatError(images_path.string(), "expected three dimensions");
  if (labels.shape.size() != 1) throw FormatError(labels_path.string(), "expected one dimension");
  const std::vector<std::int64_t> wide(labels.values.begin(), labels.values.end());
  check_labels(wide, images.shape[0], labels_path.string());
  return {{name, std::make_shared<ArrayDataset>(
                     own_pictures(images_path.string(), std::move(images.values), images.shape[1],
                                  images.shape[2], 1),
                     wide, std::move(class_names))}};
}

}  // namespace

IdxArray read_idx(const fs::path& path) {
  GzipFile file(path);
  std::uint8_t head[4];
  file.read(head, 4);
  if (head[0] != 0 || head[1] != 0 || head[2] != 8 || head[3] < 1 || head[3] > 4) {
    throw FormatError(file.path(), "not an IDX file of unsigned bytes");
  }
  IdxArray array;
  std::uint64_t total = 1;
  for (int i = 0; i < head[3]; ++i) {
    std::uint8_t size[4];
    file.read(size, 4);
    array.shape.push_back(std::int64_t{size[0]} << 24 | size[1] << 16 | size[2] << 8 | size[3]);
    // Sizes are below 2^32, so that the product of what is accepted and one more cannot overflow.
    total *= static_cast<std::uint64_t>(array.shape.back());
    if (total == 0 || total > 1u << 30) {
      throw FormatError(file.path(), fmt::format("the shape ({}) is empty or above 2^30 bytes",
                                                 fmt::join(array.shape, ", ")));
    }
  }
  // Grown as the data comes: a header alone takes no memory.
  while (array.values.size() < total) {
    const std::size_t have = array.values.size();
    const std::size_t piece = std::min<std::size_t>(total - have, 1 << 20);
    array.values.resize(have + piece);
    file.read(array.values.data() + have, piece);
  }
  if (!file.at_end()) throw FormatError(file.path(), "holds more than its shape needs");
  return array;
}

std::vector<Domain> open_mnist(const MnistOptions& options) {
  require_option("mnist", "path", options.path);
  return open_idx_folder(options.path, options.split, "mnist",
                         {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"});
}

std::vector<Domain> open_fashion_mnist(const FashionMnistOptions& options) {
  require_option("fashion_mnist", "path", options.path);
  return open_idx_folder(options.path, options.split, "fashion_mnist",
                         {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt",
                          "Sneaker", "Bag", "Ankle boot"});
}

}  // namespace gala
