#include "gala/data/image.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "gala/base/error.h"
#include "gala/data/image_codecs.h"

namespace gala {
namespace {

bool begins_with(std::span<const std::byte> bytes, std::string_view signature) {
  return bytes.size() >= signature.size() &&
         std::memcmp(bytes.data(), signature.data(), signature.size()) == 0;
}

}  // namespace

void Image::shape_pixels(std::int64_t new_height, std::int64_t new_width) {
  height = new_height;
  width = new_width;
  planes.clear();
  pixels.resize(static_cast<std::size_t>(height * width * 3));
}

void check_picture_size(std::uint64_t height, std::uint64_t width, const std::string& path) {
  if (height == 0 || width == 0) throw FormatError(path, "the picture has no pixels");
  if (width > kLargestPicture / height) {
    throw FormatError(path, fmt::format("the header says {} x {} pixels; at most {} are accepted",
                                        width, height, kLargestPicture));
  }
}

void decode_image(std::span<const std::byte> bytes, const std::string& path, Image& into) {
  if (bytes.empty()) throw FormatError(path, "the file is empty");
  if (begins_with(bytes, "\xff\xd8\xff")) return decode_jpeg(bytes, path, into);
  if (begins_with(bytes, "\x89PNG\r\n\x1a\n")) return decode_png(bytes, path, into);
  throw FormatError(path, "neither a JPEG nor a PNG file");
}

void read_file(const std::string& path, std::vector<std::byte>& into) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw FormatError(path, fmt::format("cannot be opened: {}", std::strerror(errno)));
  struct stat status {};
  std::string problem;
  if (::fstat(file, &status) != 0) {
    problem = std::strerror(errno);
  } else if (!S_ISREG(status.st_mode)) {
    problem = "not a plain file";
  } else {
    into.resize(static_cast<std::size_t>(status.st_size));
    std::size_t at = 0;
    while (at < into.size()) {
      const ssize_t got = ::read(file, into.data() + at, into.size() - at);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) problem = std::strerror(errno);
      if (got <= 0) break;
      at += static_cast<std::size_t>(got);
    }
    into.resize(at);
  }
  ::close(file);
  if (!problem.empty()) throw FormatError(path, fmt::format("cannot be read: {}", problem));
}

}  // namespace gala
