// Pictures and arrays.
#include <zlib.h>

#include <cstring>

#include "fuzz/scratch.h"
#include "gala/data/cifar.h"
#include "gala/data/idx.h"
#include "gala/data/image.h"
#include "gala/data/npy.h"

namespace gala::fuzz {
namespace {

std::uint32_t big_endian(const char* bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

/// A PNG file whose chunks have their right sums, so that what they hold is looked at.
std::string with_right_sums(std::string file) {
  constexpr std::size_t kSignature = 8, kAround = 12;
  for (std::size_t at = kSignature; at + kAround <= file.size();) {
    const std::size_t length = big_endian(file.data() + at);
    if (length > file.size() - at - kAround) break;
    const auto sum = static_cast<std::uint32_t>(
        crc32_z(0, reinterpret_cast<const Bytef*>(file.data() + at + 4), length + 4));
    for (int i = 0; i < 4; ++i) {
      file[at + 8 + length + static_cast<std::size_t>(i)] = static_cast<char>(sum >> (24 - 8 * i));
    }
    at += length + kAround;
  }
  return file;
}

void decode(std::string_view file) {
  Image image;
  accepted([&] {
    decode_image(std::as_bytes(std::span(file)), "picture", image);
    require(image.pixels.size() == static_cast<std::size_t>(image.height * image.width * 3),
            "a picture of another size");
  });
}

/// Every picture and label of a set that could be opened.
void read_all(const Dataset& data) {
  Image image;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(data.size(), 64); ++i) {
    require(data.label(i) < data.classes(), "a label beyond the classes");
    accepted([&] { data.read(i, image); });
  }
}

}  // namespace

void png(Bytes bytes) {
  decode(as_text(bytes));
  decode(with_right_sums(std::string(as_text(bytes))));
}

void jpeg(Bytes bytes) {
  decode(as_text(bytes));
}

void npy(Bytes bytes) {
  static const Scratch scratch;
  const auto path = scratch.write("array.npy", as_text(bytes));
  accepted([&] {
    const NpyArray array = read_npy(path);
    require(array.data.size() == static_cast<std::size_t>(array.count() * array.element_size()),
            "an array of another size");
    read_npy_integers(array, path.string());
  });
}

/// The images, beside ten labels, and the labels, beside ten images of one pixel.
void idx(Bytes bytes) {
  static const Scratch scratch;
  using namespace std::string_view_literals;
  constexpr auto kTenLabels = "\0\0\x08\x01\0\0\0\x0a\0\1\2\3\4\5\6\7\x08\x09"sv;
  constexpr auto kTenImages = "\0\0\x08\x03\0\0\0\x0a\0\0\0\x01\0\0\0\x01__________"sv;
  const auto open = [&] {
    accepted([&] {
      const auto domains = open_mnist({.path = scratch.path().string()});
      read_all(*domains.at(0).data);
    });
  };
  scratch.write("t10k-images-idx3-ubyte", as_text(bytes));
  scratch.write("t10k-labels-idx1-ubyte", kTenLabels);
  open();
  scratch.write("t10k-images-idx3-ubyte", kTenImages);
  scratch.write("t10k-labels-idx1-ubyte", as_text(bytes));
  open();
}

/// The official files of ten and a hundred classes; a list of labels beside a PNG of one picture.
void cifar(Bytes bytes) {
  static const Scratch binary, listed;
  binary.write("test_batch.bin", as_text(bytes));
  binary.write("test.bin", as_text(bytes));
  for (const int classes : {10, 100}) {
    accepted([&] { read_all(*open_cifar(binary.path(), classes, Split::kTest)); });
  }
  static const auto picture = [] {
    // One row of 1024 grey pixels, all black.
    std::string rows(1025, '\0'), packed(64, '\0');
    uLongf size = packed.size();
    compress(reinterpret_cast<Bytef*>(packed.data()), &size,
             reinterpret_cast<const Bytef*>(rows.data()), rows.size());
    packed.resize(size);
    const auto chunk = [](const std::string& kind, const std::string& content) {
      return std::string("\0\0\0", 3) + static_cast<char>(content.size()) + kind + content + "sum.";
    };
    const std::string head("\0\0\4\0\0\0\0\1\x08\0\0\0\0", 13);
    return listed.write("test_batch.png",
                        with_right_sums("\x89PNG\r\n\x1a\n" + chunk("IHDR", head) +
                                        chunk("IDAT", packed) + chunk("IEND", "")));
  }();
  listed.write("test_lables.json", as_text(bytes));
  accepted([&] { read_all(*open_cifar(listed.path(), 10, Split::kTest)); });
}

}  // namespace gala::fuzz
