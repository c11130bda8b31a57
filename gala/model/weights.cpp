#include "gala/model/weights.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <map>
#include <optional>
#include <span>

#include "gala/base/error.h"
#include "gala/base/hash.h"
#include "gala/base/input_file.h"
#include "gala/base/words.h"
#include "gala/model/safetensors.h"
#include "gala/model/torch_checkpoint.h"
#include "gala/model/weight_match.h"

namespace gala {
namespace {

using nlohmann::json;

constexpr const char* kMetadataKey = "gala";
/// Of files that gala/adapt/state_file.h writes.
constexpr const char* kStateKey = "gala_state";

bool looks_like_safetensors(std::string_view start) {
  if (start.size() < 9) return false;
  std::uint64_t header_length = 0;
  std::memcpy(&header_length, start.data(), sizeof(header_length));
  constexpr std::uint64_t kLargestHeader = 100'000'000;
  return header_length <= kLargestHeader && start[8] == '{';
}

bool looks_like_torch(std::string_view start) {
  return start.starts_with("PK\x03\x04") || start.starts_with("PK\x05\x06") ||
         (start.size() > 1 && start[0] == '\x80' && start[1] >= 2 && start[1] <= 5);
}

/// Says what the file is instead, as far as its beginning tells: failed downloads are common.
[[noreturn]] void refuse_unknown(const std::string& path, std::string_view start) {
  if (start.empty()) throw FormatError(path, "is empty");
  if (start.starts_with("version ") && start.find("git-lfs") != std::string_view::npos) {
    throw FormatError(path,
                      "is a Git LFS pointer and not the file it stands for: fetch that with "
                      "`git lfs pull`");
  }
  std::string lower(start);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto first = lower.find_first_not_of("\xef\xbb\xbf \t\r\n");
  const auto begins = first == std::string::npos ? "" : lower.substr(first);
  if (begins.starts_with("<!doctype html") || begins.starts_with("<html")) {
    throw FormatError(path,
                      "is a web page: the download went wrong (was a login or a confirmation "
                      "asked for?)");
  }
  const bool is_text = std::all_of(start.begin(), start.end(), [](unsigned char c) {
    return std::isprint(c) || std::isspace(c);
  });
  if (is_text) {
    const auto line = start.substr(0, std::min<std::size_t>(start.find_first_of("\r\n"), 60));
    throw FormatError(path, fmt::format("is text (\"{}\") and neither safetensors nor a PyTorch "
                                        "checkpoint",
                                        line));
  }
  throw FormatError(path, "is neither safetensors nor a PyTorch checkpoint");
}

json parse_metadata(const std::string& path, const std::string& text) {
  constexpr int kDeepest = 8;
  json metadata;
  try {
    metadata = json::parse(text, [&](int depth, json::parse_event_t, json&) {
      if (depth > kDeepest) throw FormatError(path, "its metadata \"gala\" is nested too deeply");
      return true;
    });
  } catch (const json::exception& error) {
    throw FormatError(path, fmt::format("its metadata \"gala\" is not JSON: {}", in_words(error)));
  }
  if (!metadata.is_object()) throw FormatError(path, "its metadata \"gala\" is not a JSON object");
  if (metadata.contains("model") && !metadata["model"].is_string()) {
    throw FormatError(path, "\"model\" in its metadata is not a text");
  }
  const json training = metadata.value("training", json::object());
  if (!training.is_object() || !training.value("plan", json("")).is_string() ||
      !training.value("parameters", json::object()).is_object()) {
    throw FormatError(path, "\"training\" in its metadata is not the record of a training");
  }
  return metadata;
}

bool is_one_per_channel(const at::Tensor& tensor) {
  return tensor.is_floating_point() &&
         (tensor.sizes() == at::IntArrayRef{3} || tensor.sizes() == at::IntArrayRef{1, 3, 1, 1});
}

/// Takes the buffers `mu` and `sigma` out of the file: what the network itself would subtract from
/// its input and divide it by. Without both of them, or in another shape, they are left there.
std::optional<Preprocessing> take_input_norm(WeightFile& file, const Preprocessing& otherwise) {
  const at::Tensor* mean = nullptr;
  const at::Tensor* std = nullptr;
  for (const NamedTensor& item : file.tensors) {
    if (item.name == "mu" && is_one_per_channel(item.tensor)) mean = &item.tensor;
    if (item.name == "sigma" && is_one_per_channel(item.tensor)) std = &item.tensor;
  }
  if (!mean || !std) return std::nullopt;
  Preprocessing preprocessing = otherwise;
  for (std::int64_t c = 0; c < 3; ++c) {
    preprocessing.mean[static_cast<std::size_t>(c)] = mean->flatten()[c].item<double>();
    preprocessing.std[static_cast<std::size_t>(c)] = std->flatten()[c].item<double>();
  }
  std::erase_if(file.tensors,
                [](const NamedTensor& item) { return item.name == "mu" || item.name == "sigma"; });
  return preprocessing;
}

/// The preprocessing that the file carries; `input_norm` where its metadata has none.
std::optional<Preprocessing> find_preprocessing(const WeightFile& file,
                                                const std::optional<Preprocessing>& input_norm,
                                                const std::string& path) {
  const auto found = file.metadata.find("preprocessing");
  if (found == file.metadata.end() && !input_norm) return std::nullopt;
  try {
    // Through JSON, so that one place checks the values.
    return Preprocessing::from_json(found != file.metadata.end() ? *found : input_norm->to_json());
  } catch (const ConfigError& error) {
    throw FormatError(
        path, fmt::format("{}: {}", found != file.metadata.end() ? "its metadata" : "mu and sigma",
                          error.what()));
  }
}

/// Takes the tensors of the head out of the file when they are for another number of classes.
std::vector<std::string> take_other_head(WeightFile& file, const Model& model) {
  std::vector<std::string> taken;
  for (const Parameter& parameter : model.parameters()) {
    if (!parameter.in_head()) continue;
    std::erase_if(file.tensors, [&](const NamedTensor& item) {
      const auto theirs = item.tensor.sizes(), ours = parameter.value.sizes();
      // Only the first size, that of the classes, may differ.
      const bool other = item.name == parameter.name && theirs.size() == ours.size() &&
                         theirs[0] != ours[0] && theirs.slice(1) == ours.slice(1);
      if (other) taken.push_back(fmt::format("{} [{}]", item.name, fmt::join(theirs, ", ")));
      return other;
    });
  }
  return taken;
}

/// Copies as float32 on the CPU, all finite.
std::vector<at::Tensor> convert(const Model& model, const std::vector<at::Tensor>& tensors,
                                const std::string& path) {
  const auto places = weight_slots(model);
  std::vector<at::Tensor> values;
  for (std::size_t i = 0; i < places.size(); ++i) {
    values.push_back(tensors[i].defined() ? tensors[i].to(at::kFloat) : at::Tensor());
    if (tensors[i].defined() && !at::isfinite(values.back()).all().item<bool>()) {
      throw FormatError(path, fmt::format("tensor \"{}\" holds values that are not finite float32 "
                                          "numbers",
                                          places[i].name));
    }
  }
  return values;
}

std::vector<std::string> parse_classes(const json& list, const Model& model,
                                       const std::string& path) {
  if (!list.is_array() ||
      !std::all_of(list.begin(), list.end(), [](const json& item) { return item.is_string(); })) {
    throw FormatError(path, "its class names are not a list of texts");
  }
  if (static_cast<std::int64_t>(list.size()) != model.classes()) {
    throw FormatError(path, fmt::format("names {} classes, but {} has {}", list.size(),
                                        model.spec().to_string(), model.classes()));
  }
  return list.get<std::vector<std::string>>();
}

enum class Format { kSafetensors, kTorch };

/// Throws FormatError when it is neither.
Format tell_format(const std::filesystem::path& path) {
  const InputFile file(path);
  constexpr std::uint64_t kStart = 512;
  std::string start(static_cast<std::size_t>(std::min(file.size(), kStart)), '\0');
  file.read(0, std::as_writable_bytes(std::span(start)));
  if (looks_like_safetensors(start)) return Format::kSafetensors;
  if (looks_like_torch(start)) return Format::kTorch;
  refuse_unknown(file.path(), start);
}

json own_metadata(const std::string& path, const std::map<std::string, std::string>& metadata) {
  if (metadata.contains(kStateKey)) {
    throw FormatError(path,
                      "is a saved state and no weights: --resume goes on from it (weights are what "
                      "gala train and --save-weights write)");
  }
  const auto found = metadata.find(kMetadataKey);
  return found == metadata.end() ? json::object() : parse_metadata(path, found->second);
}

}  // namespace

WeightFile read_weights(const std::filesystem::path& path) {
  WeightFile result;
  if (tell_format(path) == Format::kSafetensors) {
    Safetensors content = read_safetensors(path);
    result.tensors = std::move(content.tensors);
    result.metadata = own_metadata(path.string(), content.metadata);
  } else {
    result.tensors = read_torch_checkpoint(path);
  }
  return result;
}

json read_weight_metadata(const std::filesystem::path& path) {
  if (tell_format(path) != Format::kSafetensors) return json::object();
  return own_metadata(path.string(), read_safetensors_metadata(path));
}

namespace {

LoadedWeights load(Model& model, const std::filesystem::path& path, bool accept_other_head) {
  // Everything that can fail comes before the first change of the network.
  WeightFile file = read_weights(path);
  const std::string name = path.string();
  LoadedWeights result;
  result.prefix = take_off_prefix(file, model);
  const auto input_norm = take_input_norm(file, model.preprocessing());
  if (accept_other_head) result.not_taken = take_other_head(file, model);
  const bool keeps_head = !result.not_taken.empty();
  const auto values = convert(model, match_weights(model, file, name, keeps_head), name);
  const auto preprocessing = find_preprocessing(file, input_norm, name);
  std::vector<std::string> classes;
  if (const auto found = file.metadata.find("classes");
      found != file.metadata.end() && !keeps_head) {
    classes = parse_classes(*found, model, name);
  }

  const at::NoGradGuard no_gradients;
  const auto places = weight_slots(model);
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (values[i].defined()) places[i].value.copy_(values[i]);
  }
  if (preprocessing) model.set_preprocessing(*preprocessing);
  if (!classes.empty()) model.set_class_names(std::move(classes));
  result.preprocessing = preprocessing.has_value();
  return result;
}

}  // namespace

LoadedWeights load_weights(Model& model, const std::filesystem::path& path) {
  return load(model, path, /*accept_other_head=*/false);
}

LoadedWeights load_first_weights(Model& model, const std::filesystem::path& path) {
  return load(model, path, /*accept_other_head=*/true);
}

std::string first_not_finite(const Model& model) {
  for (const WeightSlot& slot : weight_slots(model)) {
    if (!at::isfinite(slot.value.detach()).all().item<bool>()) return slot.name;
  }
  return {};
}

void save_weights(const Model& model, const std::filesystem::path& path,
                  const SaveOptions& options) {
  if (const std::string name = first_not_finite(model); !name.empty()) {
    fail("{}: not written, since {} holds values that are not finite", path.string(), name);
  }
  std::vector<NamedTensor> tensors;
  for (const WeightSlot& slot : weight_slots(model)) {
    tensors.push_back({slot.name, slot.value.detach().to(options.type)});
  }
  json metadata = {{"model", model.spec().to_string()},
                   {"preprocessing", model.preprocessing().to_json()}};
  if (!model.class_names().empty()) metadata["classes"] = model.class_names();
  metadata.update(options.metadata);
  std::string text;
  try {
    text = metadata.dump();
  } catch (const json::exception&) {
    fail("{}: a class name or other metadata is not UTF-8 text", path.string());
  }
  // `format` is what other readers of safetensors look for.
  write_safetensors(path, tensors, {{kMetadataKey, text}, {"format", "pt"}});
}

std::string weight_hash(const Model& model) {
  Sha256 hash;
  for (const WeightSlot& slot : weight_slots(model)) {
    const at::Tensor values = slot.value.detach().cpu().contiguous();
    hash.update(fmt::format("{} {} [{}]\n", slot.name, c10::toString(values.scalar_type()),
                            fmt::join(values.sizes(), ",")));
    hash.update(values.const_data_ptr(), values.nbytes());
  }
  return hash.hex();
}

}  // namespace gala
