#include "gala/model/safetensors.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <ostream>
#include <set>
#include <string_view>
#include <tuple>

#include "gala/base/error.h"
#include "gala/base/file.h"
#include "gala/base/input_file.h"
#include "gala/base/words.h"
#include "gala/model/raw_tensor.h"

namespace gala {
namespace {

using nlohmann::json;

constexpr std::uint64_t kLargestHeader = 100'000'000;
constexpr std::size_t kMostDimensions = 64;
constexpr std::string_view kMetadata = "__metadata__";

struct TypeName {
  std::string_view name;
  at::ScalarType type;
};
constexpr std::array<TypeName, 10> kTypes{{{"F64", at::kDouble},
                                           {"F32", at::kFloat},
                                           {"F16", at::kHalf},
                                           {"BF16", at::kBFloat16},
                                           {"I64", at::kLong},
                                           {"I32", at::kInt},
                                           {"I16", at::kShort},
                                           {"I8", at::kChar},
                                           {"U8", at::kByte},
                                           {"BOOL", at::kBool}}};

/// Watches the header while it is parsed: the parser itself would keep the last of two equal names
/// and build whatever depth it is given. The layout is {name: {field: value or [numbers]}}.
class HeaderWatch {
 public:
  explicit HeaderWatch(const std::string& path) : path_(path) {}

  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    using Event = json::parse_event_t;
    if (event == Event::object_start) {
      if (depth > 1) throw FormatError(path_, "its header is nested too deeply");
      names_[depth].clear();
    } else if (event == Event::array_start) {
      if (depth != 2) throw FormatError(path_, "its header has a list where none may be");
      items_ = 0;
    } else if (event == Event::key) {
      const auto name = parsed.get<std::string>();
      if (!names_[depth - 1].insert(name).second) {
        throw FormatError(path_, fmt::format("its header has \"{}\" twice", name));
      }
    } else if (event == Event::value && depth == 3 && ++items_ > kMostDimensions) {
      throw FormatError(
          path_, fmt::format("its header has a list of more than {} numbers", kMostDimensions));
    }
    return true;
  }

 private:
  const std::string& path_;
  std::array<std::set<std::string>, 2> names_;
  std::size_t items_ = 0;
};

std::uint64_t read_header_length(const InputFile& file) {
  if (file.size() < 8) {
    throw FormatError(file.path(), fmt::format("is {} bytes long: too short for a safetensors file",
                                               file.size()));
  }
  std::uint64_t length = 0;
  file.read(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > kLargestHeader) {
    throw FormatError(
        file.path(), fmt::format("its header would be {} bytes long (at most {} are accepted): not "
                                 "a safetensors file",
                                 length, kLargestHeader));
  }
  if (length > file.size() - 8) {
    throw FormatError(
        file.path(), fmt::format("its header of {} bytes goes past the end of the file ({} bytes): "
                                 "the file is cut off or no safetensors file",
                                 length, file.size()));
  }
  return length;
}

json parse_header(const InputFile& file, std::uint64_t length) {
  std::string text(length, '\0');
  file.read(8, std::as_writable_bytes(std::span(text)));
  if (!text.starts_with('{')) {
    throw FormatError(file.path(), "its header is not a JSON object: not a safetensors file");
  }
  try {
    HeaderWatch watch(file.path());
    return json::parse(text.begin(), text.end(), std::ref(watch));
  } catch (const json::exception& error) {
    throw FormatError(file.path(), fmt::format("its header is not JSON: {}", in_words(error)));
  }
}

/// One tensor of the header, checked against itself but not yet against its neighbours.
struct Entry {
  std::string name;
  at::ScalarType type = at::kFloat;
  std::vector<std::int64_t> sizes;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// The list of a field as whole numbers of at most 63 bits.
std::optional<std::vector<std::int64_t>> whole_numbers(const json& tensor, const char* field) {
  const auto found = tensor.find(field);
  if (found == tensor.end() || !found->is_array()) return std::nullopt;
  std::vector<std::int64_t> numbers;
  for (const json& item : *found) {
    if (!item.is_number_unsigned() || item.get<std::uint64_t>() > INT64_MAX) return std::nullopt;
    numbers.push_back(item.get<std::int64_t>());
  }
  return numbers;
}

Entry parse_entry(const std::string& path, const std::string& name, const json& tensor) {
  const auto refuse = [&](const std::string& problem) {
    throw FormatError(path, fmt::format("tensor \"{}\": {}", name, problem));
  };
  if (name.empty()) throw FormatError(path, "a tensor has an empty name");
  if (!tensor.is_object()) refuse("its entry in the header is not an object");
  const auto dtype = tensor.find("dtype");
  if (dtype == tensor.end() || !dtype->is_string()) refuse("its dtype is missing or not text");
  const auto& type_name = dtype->get_ref<const std::string&>();
  const auto* type = std::find_if(kTypes.begin(), kTypes.end(),
                                  [&](const TypeName& known) { return known.name == type_name; });
  if (type == kTypes.end()) {
    refuse(
        fmt::format("its dtype {} is not read (F64, F32, F16, BF16, I64, I32, I16, I8, U8 and "
                    "BOOL are)",
                    type_name));
  }
  const auto sizes = whole_numbers(tensor, "shape");
  if (!sizes) refuse("its shape is not a list of whole numbers from 0");
  const auto offsets = whole_numbers(tensor, "data_offsets");
  if (!offsets || offsets->size() != 2) {
    refuse("its data_offsets are not two whole numbers from 0");
  }
  const auto element_size = static_cast<std::int64_t>(c10::elementSize(type->type));
  if (!contiguous_strides(*sizes, element_size))
    refuse(fmt::format("its shape [{}] is too large", fmt::join(*sizes, ", ")));
  std::int64_t bytes = element_size;
  for (const auto size : *sizes) bytes *= size;
  const auto begin = offsets->front(), end = offsets->back();
  if (end < begin) refuse(fmt::format("its data_offsets [{}, {}] run backwards", begin, end));
  if (end - begin != bytes) {
    refuse(fmt::format("its data_offsets [{}, {}] hold {} bytes, but {} of shape [{}] takes {}",
                       begin, end, end - begin, type_name, fmt::join(*sizes, ", "), bytes));
  }
  return {name, type->type, *sizes, static_cast<std::uint64_t>(begin),
          static_cast<std::uint64_t>(end)};
}

/// The tensors must cover the data from its first byte to its last, in any order, each byte once.
void check_cover(const std::string& path, const std::vector<Entry>& entries,
                 std::uint64_t data_size) {
  std::uint64_t expected = 0;
  for (const Entry& entry : entries) {
    if (entry.end > data_size) {
      throw FormatError(path, fmt::format("tensor \"{}\": its data ends at {}, but the file holds "
                                          "{} bytes of data: it is cut off",
                                          entry.name, entry.end, data_size));
    }
    if (entry.begin != expected) {
      throw FormatError(path,
                        fmt::format("tensor \"{}\": its data begins at {}, but {} was expected "
                                    "(tensors must neither overlap nor leave holes)",
                                    entry.name, entry.begin, expected));
    }
    expected = entry.end;
  }
  if (expected != data_size) {
    throw FormatError(
        path, fmt::format("{} bytes after the last tensor belong to none", data_size - expected));
  }
}

std::map<std::string, std::string> parse_metadata(const std::string& path, const json& values) {
  if (!values.is_object()) throw FormatError(path, "its __metadata__ is not an object");
  std::map<std::string, std::string> metadata;
  for (const auto& [key, value] : values.items()) {
    if (!value.is_string()) {
      throw FormatError(path, fmt::format("its metadata \"{}\" is not text", key));
    }
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

/// Everything before the tensors' bytes, checked.
struct Header {
  std::map<std::string, std::string> metadata;
  std::vector<Entry> tensors;  ///< in file order
  std::uint64_t data_begin = 0;
};

Header read_header(const InputFile& file) {
  const std::uint64_t length = read_header_length(file);
  Header header;
  header.data_begin = 8 + length;
  const json values = parse_header(file, length);
  for (const auto& [name, value] : values.items()) {
    if (name == kMetadata) {
      header.metadata = parse_metadata(file.path(), value);
    } else {
      header.tensors.push_back(parse_entry(file.path(), name, value));
    }
  }
  std::sort(header.tensors.begin(), header.tensors.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  check_cover(file.path(), header.tensors, file.size() - header.data_begin);
  return header;
}

at::Tensor read_tensor(const InputFile& file, const Entry& entry, std::uint64_t data_begin) {
  // A byte other than 0 and 1 is no C++ bool, so booleans are read as numbers.
  at::Tensor tensor;
  try {
    tensor = at::empty(entry.sizes, entry.type == at::kBool ? at::kByte : entry.type);
  } catch (const c10::Error&) {
    throw FormatError(file.path(), fmt::format("tensor \"{}\": its {} bytes are too many for the "
                                               "memory",
                                               entry.name, entry.end - entry.begin));
  }
  file.read(data_begin + entry.begin, {static_cast<std::byte*>(tensor.mutable_data_ptr()),
                                       static_cast<std::size_t>(entry.end - entry.begin)});
  return entry.type == at::kBool ? tensor.ne(0) : tensor;
}

std::string_view type_name_for_writing(const NamedTensor& item) {
  const auto type = item.tensor.scalar_type();
  for (const TypeName& known : kTypes) {
    if (known.type == type) return known.name;
  }
  fail("tensor \"{}\": type {} cannot be written as safetensors", item.name, c10::toString(type));
}

std::string make_header(std::span<const NamedTensor> tensors,
                        const std::map<std::string, std::string>& metadata) {
  std::vector<std::string> entries;
  if (!metadata.empty())
    entries.push_back(fmt::format("\"{}\":{}", kMetadata, json(metadata).dump()));
  std::set<std::string_view> names;
  std::size_t offset = 0;
  for (const NamedTensor& item : tensors) {
    if (item.name.empty() || item.name == kMetadata) {
      fail("a tensor cannot be written under the name \"{}\"", item.name);
    }
    if (!names.insert(item.name).second) fail("tensor \"{}\" would be written twice", item.name);
    if (!item.tensor.defined() || item.tensor.layout() != at::kStrided) {
      fail("tensor \"{}\" has no plain values to write", item.name);
    }
    const std::size_t end = offset + item.tensor.nbytes();
    entries.push_back(fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                                  json(item.name).dump(), type_name_for_writing(item),
                                  fmt::join(item.tensor.sizes(), ","), offset, end));
    offset = end;
  }
  std::string header = fmt::format("{{{}}}", fmt::join(entries, ","));
  header.resize((header.size() + 7) / 8 * 8, ' ');
  if (header.size() > kLargestHeader) fail("the names and metadata are too long for safetensors");
  return header;
}

}  // namespace

Safetensors read_safetensors(const std::filesystem::path& path) {
  const InputFile file(path);
  Header header = read_header(file);
  Safetensors result;
  result.metadata = std::move(header.metadata);
  for (const Entry& entry : header.tensors) {
    result.tensors.push_back({entry.name, read_tensor(file, entry, header.data_begin)});
  }
  return result;
}

std::map<std::string, std::string> read_safetensors_metadata(const std::filesystem::path& path) {
  return read_header(InputFile(path)).metadata;
}

void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::string header;
  try {
    header = make_header(tensors, metadata);
  } catch (const json::exception&) {
    fail("{}: a name or a piece of metadata is not UTF-8 text", path.string());
  }
  const std::uint64_t length = header.size();
  write_atomically(path, [&](std::ostream& out) {
    out.write(reinterpret_cast<const char*>(&length), 8);
    out.write(header.data(), static_cast<std::streamsize>(header.size()));
    for (const NamedTensor& item : tensors) {
      const at::Tensor values = item.tensor.detach().cpu().contiguous();
      out.write(static_cast<const char*>(values.const_data_ptr()),
                static_cast<std::streamsize>(values.nbytes()));
    }
  });
}

}  // namespace gala
