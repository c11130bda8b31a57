#include "gala/data/npy.h"

#include <array>
#include <cstring>
#include <limits>
#include <optional>

#include "gala/base/error.h"
#include "gala/base/file.h"
#include "gala/base/mapped_file.h"

namespace gala {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kLongestHeader = 1 << 16;
constexpr std::size_t kMostDimensions = 32;

struct TypeSize {
  std::string_view code;
  std::int64_t bytes;
};
constexpr std::array<TypeSize, 12> kTypes = {{{"|b1", 1},
                                              {"|i1", 1},
                                              {"|u1", 1},
                                              {"<i2", 2},
                                              {"<u2", 2},
                                              {"<i4", 4},
                                              {"<u4", 4},
                                              {"<i8", 8},
                                              {"<u8", 8},
                                              {"<f2", 2},
                                              {"<f4", 4},
                                              {"<f8", 8}}};

std::int64_t size_of_type(std::string_view code) {
  for (const TypeSize& type : kTypes) {
    if (type.code == code) return type.bytes;
  }
  return 0;
}

/// Reads the header: a Python dictionary with three known keys.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  void parse(NpyArray& array) {
    bool has_type = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr" && !has_type) {
        array.type = string();
        has_type = true;
      } else if (key == "fortran_order" && !has_order) {
        if (boolean()) refuse("is in Fortran order; save it with np.ascontiguousarray");
        has_order = true;
      } else if (key == "shape" && !has_shape) {
        array.shape = shape();
        has_shape = true;
      } else {
        refuse(fmt::format("unexpected or repeated key \"{}\" in the header", key));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) refuse("something follows the header's dictionary");
    if (!has_type || !has_order || !has_shape) {
      refuse("the header lacks one of descr, fortran_order, shape");
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& problem) const { throw FormatError(path_, problem); }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) refuse(fmt::format("expected '{}' at byte {} of the header", c, at_));
  }
  std::string string() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : ' ';
    if (quote != '\'' && quote != '"') {
      refuse(
          fmt::format("expected a quoted word at byte {} of the header (structured and object "
                      "arrays are not read)",
                      at_));
    }
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) refuse("a quoted word in the header has no end");
    std::string word(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return word;
  }
  bool boolean() {
    skip_space();
    for (const auto& [word, value] :
         {std::pair{std::string_view("True"), true}, {"False", false}}) {
      if (text_.substr(at_, word.size()) == word) return at_ += word.size(), value;
    }
    refuse("fortran_order is neither True nor False");
  }
  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> sizes;
    expect('(');
    while (!accept(')')) {
      if (sizes.size() == kMostDimensions) refuse("more than 32 dimensions");
      sizes.push_back(number());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return sizes;
  }
  std::int64_t number() {
    skip_space();
    std::int64_t value = 0;
    const std::size_t begin = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (value > (std::numeric_limits<std::int64_t>::max() - 9) / 10) {
        refuse("a size in the header is too large");
      }
      value = value * 10 + (text_[at_] - '0');
    }
    if (at_ == begin) refuse(fmt::format("expected a size at byte {} of the header", at_));
    return value;
  }

  std::string_view text_;
  const std::string& path_;
  std::size_t at_ = 0;
};

/// The bytes the shape needs, or nothing when they do not fit a number.
std::optional<std::uint64_t> bytes_needed(const NpyArray& array) {
  std::uint64_t bytes = static_cast<std::uint64_t>(array.element_size());
  for (std::int64_t size : array.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes)) return {};
  }
  return bytes;
}

template <class T>
void widen(std::span<const std::byte> data, std::vector<std::int64_t>& into,
           const std::string& path) {
  for (std::size_t at = 0; at < data.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, data.data() + at, sizeof(T));
    if (!std::in_range<std::int64_t>(value)) {
      throw FormatError(path, fmt::format("element {} is {}, too large", at / sizeof(T), value));
    }
    into.push_back(static_cast<std::int64_t>(value));
  }
}

}  // namespace

std::int64_t NpyArray::element_size() const {
  return size_of_type(type);
}

std::int64_t NpyArray::count() const {
  return static_cast<std::int64_t>(data.size()) / element_size();
}

NpyArray read_npy(const std::filesystem::path& path) {
  const std::string name = path.string();
  auto file = MappedFile::open(path);
  const std::span<const std::byte> bytes = std::as_bytes(file->bytes());
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.size() < 10 || !text.starts_with(kMagic)) throw FormatError(name, "not a .npy file");
  const auto byte = [&](std::size_t i) { return std::size_t{static_cast<unsigned char>(text[i])}; };
  const std::size_t version = byte(6);
  if (version < 1 || version > 3) {
    throw FormatError(name, fmt::format(".npy version {} is unknown (known: 1, 2, 3)", version));
  }
  const std::size_t begin = version == 1 ? 10 : 12;
  if (text.size() < begin) throw FormatError(name, "the file ends inside its header");
  std::size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > kLongestHeader || length > text.size() - begin) {
    throw FormatError(
        name, fmt::format("the header claims {} bytes, the file has {}", length, text.size()));
  }
  NpyArray array;
  HeaderParser(text.substr(begin, length), name).parse(array);
  if (array.element_size() == 0) {
    throw FormatError(name,
                      fmt::format("elements of type {} are not read (little-endian numbers of "
                                  "1 to 8 bytes are)",
                                  array.type));
  }
  const auto needed = bytes_needed(array);
  array.data = bytes.subspan(begin + length);
  if (!needed || *needed != array.data.size()) {
    throw FormatError(name,
                      fmt::format("the shape ({}) of {} does not fit the {} bytes that follow "
                                  "the header",
                                  fmt::join(array.shape, ", "), array.type, array.data.size()));
  }
  array.keeper = std::move(file);
  return array;
}

std::vector<std::int64_t> read_npy_integers(const NpyArray& array, const std::string& path) {
  if (array.shape.size() != 1) {
    throw FormatError(path, fmt::format("expected one dimension, found shape ({})",
                                        fmt::join(array.shape, ", ")));
  }
  std::vector<std::int64_t> values;
  values.reserve(static_cast<std::size_t>(array.shape[0]));
  const std::string& type = array.type;
  if (type == "|i1")
    widen<std::int8_t>(array.data, values, path);
  else if (type == "|u1")
    widen<std::uint8_t>(array.data, values, path);
  else if (type == "<i2")
    widen<std::int16_t>(array.data, values, path);
  else if (type == "<u2")
    widen<std::uint16_t>(array.data, values, path);
  else if (type == "<i4")
    widen<std::int32_t>(array.data, values, path);
  else if (type == "<u4")
    widen<std::uint32_t>(array.data, values, path);
  else if (type == "<i8")
    widen<std::int64_t>(array.data, values, path);
  else if (type == "<u8")
    widen<std::uint64_t>(array.data, values, path);
  else
    throw FormatError(path, fmt::format("expected integers, found elements of type {}", type));
  return values;
}

void write_npy(const std::filesystem::path& path, std::string_view type,
               std::span<const std::int64_t> shape,
               const std::function<void(std::ostream&)>& write) {
  if (size_of_type(type) == 0) fail("{}: cannot write elements of type {}", path.string(), type);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                   type, fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  // The data begins at a multiple of 64.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  write_atomically(path, [&](std::ostream& out) {
    out << kMagic << '\x01' << '\0' << static_cast<char>(header.size() & 255)
        << static_cast<char>(header.size() >> 8) << header;
    write(out);
  });
}

}  // namespace gala
