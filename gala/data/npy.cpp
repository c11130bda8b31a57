#include "gala/data/npy.h"

#include <c10/util/Half.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "gala/base/error.h"
#include "gala/base/file.h"

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

  void parse(NpyFile& array) {
    bool has_type = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr" && !has_type) {
        array.type = string();
        has_type = true;
      } else if (key == "fortran_order" && !has_order) {
        array.fortran = boolean();
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
std::optional<std::uint64_t> bytes_needed(const NpyFile& array) {
  std::uint64_t bytes = static_cast<std::uint64_t>(array.element_size());
  for (std::int64_t size : array.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes)) return {};
  }
  return bytes;
}

void swap_bytes(std::span<std::byte> data, std::size_t size) {
  for (std::size_t at = 0; at < data.size(); at += size) {
    std::reverse(data.begin() + static_cast<std::ptrdiff_t>(at),
                 data.begin() + static_cast<std::ptrdiff_t>(at + size));
  }
}

/// Steps through the indices of all dimensions but the first, the last one fastest, and knows where
/// in a file of Fortran order the elements with that index lie: together, one for each first index.
class FortranColumns {
 public:
  explicit FortranColumns(std::span<const std::int64_t> shape) : shape_(shape) {
    std::int64_t step = 1;
    for (const std::int64_t size : shape) {
      steps_.push_back(step);
      step *= size;
    }
    index_.resize(shape.size());
  }
  std::int64_t first_element() const {
    std::int64_t place = 0;
    for (std::size_t d = 1; d < shape_.size(); ++d) place += index_[d] * steps_[d];
    return place;
  }
  void next() {
    for (std::size_t d = shape_.size() - 1; d > 0; --d) {
      if (++index_[d] < shape_[d]) return;
      index_[d] = 0;
    }
  }

 private:
  std::span<const std::int64_t> shape_;
  std::vector<std::int64_t> steps_, index_;
};

/// The elements of a file in Fortran order, in C order.
void read_fortran(const NpyFile& file, std::span<std::byte> into) {
  const auto size = static_cast<std::size_t>(file.element_size());
  const auto rows = static_cast<std::size_t>(file.shape[0]);
  const std::size_t columns = into.size() / size / rows;
  FortranColumns column(file.shape);
  // Some columns at once, so that what is written lies together.
  constexpr std::size_t kTogether = 64;
  std::vector<std::byte> piece(kTogether * rows * size);
  for (std::size_t first = 0; first < columns; first += kTogether) {
    const std::size_t here = std::min(kTogether, columns - first);
    for (std::size_t c = 0; c < here; ++c, column.next()) {
      file.read(column.first_element(), std::span(piece).subspan(c * rows * size, rows * size));
    }
    for (std::size_t row = 0; row < rows; ++row) {
      std::byte* to = into.data() + (row * columns + first) * size;
      for (std::size_t c = 0; c < here; ++c) {
        std::memcpy(to + c * size, piece.data() + (c * rows + row) * size, size);
      }
    }
  }
}

template <class T>
void widen(const NpyArray& array, std::vector<std::int64_t>& into, const std::string& path) {
  for (std::size_t at = 0; at < array.data.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, array.data.data() + at, sizeof(T));
    if (!std::in_range<std::int64_t>(value)) {
      throw FormatError(path, fmt::format("element {} is {}, too large", at / sizeof(T), value));
    }
    into.push_back(static_cast<std::int64_t>(value));
  }
}

/// Numbers that happen to be stored as floats.
template <class T>
void widen_floats(const NpyArray& array, std::vector<std::int64_t>& into, const std::string& path) {
  for (std::size_t at = 0; at < array.data.size(); at += sizeof(T)) {
    T stored;
    std::memcpy(&stored, array.data.data() + at, sizeof(T));
    const auto value = static_cast<double>(stored);
    // Every whole number up to here is a double.
    constexpr double kLargest = 9007199254740992.0;
    if (!(std::abs(value) <= kLargest) || value != std::trunc(value)) {
      throw FormatError(path, fmt::format("expected integers, found {} at element {} of type {}",
                                          value, at / sizeof(T), array.type));
    }
    into.push_back(static_cast<std::int64_t>(value));
  }
}

}  // namespace

std::int64_t NpyFile::element_size() const {
  return size_of_type(type);
}

std::int64_t NpyFile::count() const {
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) elements *= size;
  return elements;
}

void NpyFile::read(std::int64_t first, std::span<std::byte> into) const {
  file->read(begin + static_cast<std::uint64_t>(first * element_size()), into);
  if (swapped) swap_bytes(into, static_cast<std::size_t>(element_size()));
}

std::vector<std::byte> NpyFile::read_all() const {
  std::vector<std::byte> data;
  try {
    data.resize(static_cast<std::size_t>(count() * element_size()));
  } catch (const std::exception&) {
    throw FormatError(file->path(),
                      fmt::format("its {} elements are too many for the memory", count()));
  }
  if (fortran && shape.size() > 1 && !data.empty()) {
    read_fortran(*this, data);
  } else {
    read(0, data);
  }
  return data;
}

std::int64_t NpyArray::element_size() const {
  return size_of_type(type);
}

std::int64_t NpyArray::count() const {
  return static_cast<std::int64_t>(data.size()) / element_size();
}

NpyFile open_npy(const std::filesystem::path& path) {
  NpyFile array;
  array.file = std::make_shared<const InputFile>(path);
  const std::string& name = array.file->path();
  const std::uint64_t size = array.file->size();
  std::string text(static_cast<std::size_t>(std::min<std::uint64_t>(size, 12)), '\0');
  array.file->read(0, std::as_writable_bytes(std::span(text)));
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
  if (length > kLongestHeader || length > size - begin) {
    throw FormatError(name,
                      fmt::format("the header claims {} bytes, the file has {}", length, size));
  }
  std::string header(length, '\0');
  array.file->read(begin, std::as_writable_bytes(std::span(header)));
  HeaderParser(header, name).parse(array);
  array.begin = begin + length;
  const std::string said = array.type;
  if (said.starts_with('>')) {
    array.type[0] = '<';
    array.swapped = true;
  }
  if (array.element_size() == 0) {
    throw FormatError(
        name, fmt::format("elements of type {} are not read (numbers of 1 to 8 bytes are)", said));
  }
  const auto needed = bytes_needed(array);
  if (!needed || *needed != size - array.begin) {
    throw FormatError(name,
                      fmt::format("the shape ({}) of {} does not fit the {} bytes that follow "
                                  "the header",
                                  fmt::join(array.shape, ", "), said, size - array.begin));
  }
  return array;
}

NpyArray read_npy(const std::filesystem::path& path) {
  const NpyFile file = open_npy(path);
  return {file.type, file.shape, file.read_all()};
}

std::vector<std::int64_t> read_npy_integers(const NpyArray& array, const std::string& path) {
  if (array.shape.size() != 1) {
    throw FormatError(path, fmt::format("expected one dimension, found shape ({})",
                                        fmt::join(array.shape, ", ")));
  }
  std::vector<std::int64_t> values;
  values.reserve(static_cast<std::size_t>(array.shape[0]));
  using Widen = void (*)(const NpyArray&, std::vector<std::int64_t>&, const std::string&);
  static constexpr auto kWays = std::to_array<std::pair<std::string_view, Widen>>({
      {"|b1", widen<std::uint8_t>},
      {"|i1", widen<std::int8_t>},
      {"|u1", widen<std::uint8_t>},
      {"<i2", widen<std::int16_t>},
      {"<u2", widen<std::uint16_t>},
      {"<i4", widen<std::int32_t>},
      {"<u4", widen<std::uint32_t>},
      {"<i8", widen<std::int64_t>},
      {"<u8", widen<std::uint64_t>},
      {"<f2", widen_floats<c10::Half>},
      {"<f4", widen_floats<float>},
      {"<f8", widen_floats<double>},
  });
  for (const auto& [type, way] : kWays) {
    if (type == array.type) way(array, values, path);
  }
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
