#include "gala/model/exported/archive.h"

#include <ATen/ATen.h>

#include <vector>

#include "gala/base/error.h"
#include "gala/base/words.h"
#include "gala/model/exported/schema.h"

namespace gala::exported {
namespace {

using nlohmann::json;

constexpr int kMajorVersion = 8;
constexpr const char* kExportAgain =
    "export the network anew with tools/export_model.py, or with torch.export.save of torch 2.11 "
    "or "
    "newer";

std::shared_ptr<const FileContent> read_file(const std::filesystem::path& path) {
  auto content = FileContent::read(path);
  const auto bytes = content->bytes();
  if (bytes.size() < 4 || bytes[0] != 'P' || bytes[1] != 'K') {
    throw FormatError(path.string(), "is no exported network: a .pt2 file is a zip archive");
  }
  return content;
}

/// Sizes, strides and offsets are unions; in a stored tensor each is a plain number.
std::int64_t number_in(const json& item) {
  return item.at("as_int").get<std::int64_t>();
}

std::vector<std::int64_t> numbers_in(const json& list) {
  std::vector<std::int64_t> numbers;
  for (const json& item : list) numbers.push_back(number_in(item));
  return numbers;
}

/// How many elements lie before the end of the last one, or -1 where the numbers make no sense.
std::int64_t reach_of(const std::vector<std::int64_t>& sizes,
                      const std::vector<std::int64_t>& strides, std::int64_t offset) {
  if (sizes.size() != strides.size() || offset < 0) return -1;
  std::int64_t last = offset;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || strides[i] < 0) return -1;
    if (sizes[i] == 0) return 0;
    std::int64_t step = 0;
    if (__builtin_mul_overflow(sizes[i] - 1, strides[i], &step) ||
        __builtin_add_overflow(last, step, &last)) {
      return -1;
    }
  }
  return last + 1;
}

}  // namespace

Archive::Archive(const std::filesystem::path& path)
    : path_(path.string()), zip_(read_file(path)), root_(find_root()) {
  const std::string model = find_model();
  program_ = read_json("models/" + model + ".json");
  // Before anything else is read: what another version writes may lie elsewhere.
  try {
    const auto major = program_.at("schema_version").at("major").get<std::int64_t>();
    if (major != kMajorVersion) {
      refuse(fmt::format(
          "its graph is of version {} of the schema, {} than the one that is read ({}): "
          "{}",
          major, major > kMajorVersion ? "newer" : "older", kMajorVersion,
          major > kMajorVersion ? "a newer gala is needed" : kExportAgain));
    }
    read_payloads("data/weights/", model + "_weights_config.json");
    read_payloads("data/constants/", model + "_constants_config.json");
  } catch (const json::exception& error) {
    refuse(fmt::format("is not as torch.export.save writes it: {}", in_words(error)));
  }
  if (zip_.entries().contains(root_ + "extra/gala.json")) {
    metadata_ = read_json("extra/gala.json");
    if (!metadata_.is_object()) refuse("its gala.json is not a JSON object");
  }
}

void Archive::refuse(const std::string& problem) const {
  throw FormatError(path_, problem);
}

std::string Archive::find_root() const {
  constexpr std::string_view kMark = "archive_format";
  for (const auto& [name, entry] : zip_.entries()) {
    if (name == kMark || name.ends_with(fmt::format("/{}", kMark))) {
      return name.substr(0, name.size() - kMark.size());
    }
  }
  for (const auto& [name, entry] : zip_.entries()) {
    if (name.ends_with("serialized_exported_program.json")) {
      refuse(fmt::format("was written by an older torch.export.save: {}", kExportAgain));
    }
    if (name.ends_with("data.pkl")) {
      refuse(
          "is a PyTorch checkpoint or a TorchScript file and no exported network: weights are "
          "given "
          "by --weights, networks are exported with tools/export_model.py");
    }
  }
  refuse("is a zip archive, but not one of torch.export.save");
}

std::string Archive::find_model() const {
  const std::string folder = root_ + "models/";
  std::vector<std::string> names;
  for (const auto& [name, entry] : zip_.entries()) {
    if (name.starts_with(folder) && name.ends_with(".json")) {
      names.push_back(name.substr(folder.size(), name.size() - folder.size() - 5));
    }
  }
  if (names.empty()) {
    refuse(fmt::format("holds no graph (is it a compiled package?): {}", kExportAgain));
  }
  if (names.size() > 1) {
    refuse(fmt::format("holds {} networks ({}): save one alone", names.size(),
                       fmt::join(names, ", ")));
  }
  return names[0];
}

json Archive::read_json(const std::string& entry) const {
  const Blob blob = zip_.read(root_ + entry);
  constexpr int kDeepest = 64;
  try {
    return json::parse(blob.bytes.begin(), blob.bytes.end(),
                       [&](int depth, json::parse_event_t, json&) {
                         if (depth > kDeepest) refuse(entry + " is nested too deeply");
                         return true;
                       });
  } catch (const json::exception& error) {
    refuse(fmt::format("{} is not JSON: {}", entry, in_words(error)));
  }
}

void Archive::read_payloads(const std::string& folder, const std::string& config) {
  if (!zip_.entries().contains(root_ + folder + config)) {
    refuse(fmt::format("{}{} is missing, which says where its weights are: {}", folder, config,
                       kExportAgain));
  }
  const json listed = read_json(folder + config).at("config");
  for (const auto& [name, item] : listed.items()) {
    payloads_[name] = {root_ + folder + item.at("path_name").get<std::string>(), item};
  }
}

const Archive::Payload& Archive::payload(const std::string& name) const {
  const auto found = payloads_.find(name);
  if (found == payloads_.end()) refuse(fmt::format("the values of \"{}\" are missing", name));
  return found->second;
}

bool Archive::is_same(const std::string& one, const std::string& other) const {
  const Payload &first = payload(one), &second = payload(other);
  return first.entry == second.entry &&
         first.config.at("tensor_meta") == second.config.at("tensor_meta");
}

std::optional<at::ScalarType> Archive::type_of(const std::string& name) const {
  const json& meta = payload(name).config.at("tensor_meta");
  return meta.is_null() ? std::nullopt : scalar_type(meta.at("dtype").get<std::int64_t>());
}

at::Tensor Archive::tensor(const std::string& name) const {
  try {
    return read_tensor(name);
  } catch (const json::exception& error) {
    refuse(fmt::format("what it says of \"{}\" is garbled: {}", name, in_words(error)));
  }
}

at::Tensor Archive::read_tensor(const std::string& name) const {
  const auto& [entry, config] = payload(name);
  if (config.at("use_pickle").get<bool>()) {
    refuse(
        fmt::format("\"{}\" is stored as a pickle, which is not read: export a network of plain "
                    "tensors",
                    name));
  }
  const auto found = zip_.entries().find(entry);
  if (found == zip_.entries().end()) {
    refuse(fmt::format("the values of \"{}\" are missing: there is no entry {}", name, entry));
  }
  if (found->second.size != found->second.packed_size || found->second.method != 0) {
    refuse(
        fmt::format("\"{}\" is compressed, and torch.export.save stores weights as they are: was "
                    "the file packed anew?",
                    name));
  }
  const json& meta = config.at("tensor_meta");
  const auto type = type_of(name);
  if (!type) refuse(fmt::format("\"{}\" is of a type of numbers that is not read", name));
  if (layout(meta.at("layout").get<std::int64_t>()) != at::kStrided) {
    refuse(fmt::format("\"{}\" is not a dense tensor", name));
  }
  const auto sizes = numbers_in(meta.at("sizes")), strides = numbers_in(meta.at("strides"));
  const std::int64_t offset = number_in(meta.at("storage_offset"));
  const std::size_t element = c10::elementSize(*type);
  const Blob blob = aligned(zip_.read(entry), 8);
  const std::int64_t reach = reach_of(sizes, strides, offset);
  if (reach < 0 || static_cast<std::uint64_t>(reach) > blob.bytes.size() / element) {
    refuse(fmt::format("\"{}\" [{}] does not lie within the {} bytes of its entry", name,
                       fmt::join(sizes, ", "), blob.bytes.size()));
  }
  return tensor_over(blob, *type, sizes, strides, offset).clone(at::MemoryFormat::Contiguous);
}

}  // namespace gala::exported
