#include "gala/base/words.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <typeinfo>

#include "gala/base/error.h"

namespace gala {
namespace {

constexpr char kOutOfRange[] = "a value is missing or out of range";
// As gala/base/cuda_check.h says them.
constexpr std::string_view kGpuFailed = "the GPU failed: ";
constexpr std::string_view kDeviceIsFull = "the device has not enough memory for this";
constexpr std::size_t kLongestWord = 600;
constexpr std::size_t kLongestLine = 4000;

bool continues_a_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

/// The text below `marker` up to the next character that is no digit.
std::string number_behind(const std::string& text, std::string_view marker) {
  const std::size_t at = text.find(marker);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + marker.size();
  return text.substr(begin, text.find_first_not_of("0123456789", begin) - begin);
}

std::string memory_words(const std::string& bytes) {
  if (bytes.empty() || bytes.size() > 19) return "there is not enough memory";
  return fmt::format("there is not enough memory: {:.3g} GB were asked for at once",
                     static_cast<double>(std::stoull(bytes)) / 1e9);
}

/// Told by the name of its type, which lies in LibTorch's namespace: this part knows nothing else of it.
bool is_torchs(const std::exception& error) {
  return std::string_view(typeid(error).name()).find("3c10") != std::string_view::npos;
}

/// What CUDA, cuBLAS and cuDNN said, known by what LibTorch puts before it; empty where it is none of theirs.
std::string gpu_words(const std::string& text) {
  const bool of_cudnn = text.starts_with("cuDNN error: ");
  for (const std::string_view begin : {"CUDA error: ", "CUDA driver error: ", "cuDNN error: "}) {
    if (!text.starts_with(begin)) continue;
    const std::string_view said = std::string_view(text).substr(begin.size());
    // CUDNN_STATUS_ALLOC_FAILED has in newer versions the longer name of what was asked for.
    const bool full = said.starts_with("out of memory") ||
                      said.find("_ALLOC_FAILED") != std::string_view::npos ||
                      said.find("_ALLOCATION_FAILED") != std::string_view::npos;
    if (full) return std::string(kDeviceIsFull);
    return std::string(kGpuFailed) + in_brief(of_cudnn ? text : said);
  }
  return "";
}

std::string torch_words(const std::exception& error) {
  const std::string text = first_line(error.what());  // a stack trace stands below
  if (std::string_view(typeid(error).name()).find("OutOfMemory") != std::string_view::npos) {
    return std::string(kDeviceIsFull);
  }
  if (text.find("can't allocate memory") != std::string::npos) {
    return memory_words(number_behind(text, "you tried to allocate "));
  }
  const std::string of_gpu = gpu_words(text);
  return of_gpu.empty() ? "LibTorch: " + in_brief(text) : of_gpu;
}

std::string json_words(const nlohmann::json::exception& error) {
  if (const auto* parse = dynamic_cast<const nlohmann::json::parse_error*>(&error)) {
    return fmt::format("it cannot be parsed as JSON (byte {})", parse->byte);
  }
  if (dynamic_cast<const nlohmann::json::type_error*>(&error)) {
    return "a value is not of the kind that it should be";
  }
  constexpr int kKeyNotFound = 403;
  if (error.id != kKeyNotFound) return kOutOfRange;
  // "[json.exception.out_of_range.403] key 'NAME' not found"
  const std::string text = error.what();
  const std::size_t begin = text.find('\''), end = text.rfind('\'');
  if (begin == std::string::npos || end == begin) return "a value is missing";
  return fmt::format("the value \"{}\" is missing",
                     in_brief(std::string_view(text).substr(begin + 1, end - begin - 1)));
}

std::string file_words(const std::filesystem::filesystem_error& error) {
  std::string text = in_brief(error.path1().string());
  if (!error.path2().empty()) text += " and " + in_brief(error.path2().string());
  return fmt::format("{}: {}", text.empty() ? "a file" : text, error.code().message());
}

/// Breaks a message into pieces that end with one of `ends`, and cuts the long ones short.
std::string cut_pieces(const std::string& text, std::string_view ends, std::size_t most) {
  std::string cut;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of(ends, begin), text.size());
    cut += in_brief(std::string_view(text).substr(begin, end - begin), most);
    if (end < text.size()) cut += text[end];
    begin = end + 1;
  }
  return cut;
}

}  // namespace

std::string in_brief(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  std::size_t head = most * 2 / 3, tail = text.size() - most / 3;
  while (head > 0 && continues_a_character(text[head])) --head;
  while (tail < text.size() && continues_a_character(text[tail])) ++tail;
  return fmt::format("{}[... {} characters ...]{}", text.substr(0, head), tail - head,
                     text.substr(tail));
}

std::string readable(const std::string& message) {
  return cut_pieces(cut_pieces(message, " \t\n", kLongestWord), "\n", kLongestLine);
}

std::string as_utf8(const std::string& text) {
  using json = nlohmann::json;
  return json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace));
}

std::string in_words(const std::exception& error) {
  if (dynamic_cast<const Error*>(&error)) return error.what();
  if (is_torchs(error)) return torch_words(error);
  if (const auto* json = dynamic_cast<const nlohmann::json::exception*>(&error)) {
    return json_words(*json);
  }
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&error)) {
    return file_words(*file);
  }
  if (const auto* system = dynamic_cast<const std::system_error*>(&error)) {
    return "the system refused: " + system->code().message();
  }
  if (dynamic_cast<const std::bad_alloc*>(&error)) return memory_words("");
  if (dynamic_cast<const std::length_error*>(&error)) return "a size is too large for any memory";
  if (dynamic_cast<const std::out_of_range*>(&error)) {
    return kOutOfRange;
  }
  return in_brief(first_line(error.what()));
}

bool is_of_the_gpu(const std::exception& error) {
  return in_words(error).starts_with(kGpuFailed);
}

bool is_of_a_full_device(const std::exception& error) {
  return in_words(error) == kDeviceIsFull;
}

bool is_users_mistake(const std::exception& error) {
  if (dynamic_cast<const ConfigError*>(&error) || dynamic_cast<const FormatError*>(&error) ||
      dynamic_cast<const nlohmann::json::exception*>(&error)) {
    return true;
  }
  const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&error);
  if (!file) return false;
  // Not a full or broken disk: of these the user's words know nothing.
  constexpr std::array kOfPaths{ELOOP, ENOENT, EACCES, EPERM, ENOTDIR, EISDIR, ENAMETOOLONG, EROFS};
  return std::find(kOfPaths.begin(), kOfPaths.end(), file->code().value()) != kOfPaths.end();
}

}  // namespace gala
