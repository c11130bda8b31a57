#include "cli/command_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <set>
#include <utility>

#include "gala/base/error.h"
#include "gala/base/file.h"
#include "gala/data/data_paths.h"

namespace gala {
namespace {

namespace fs = std::filesystem;

/// What a file is, whatever its path: device and number on it.
using Identity = std::pair<dev_t, ino_t>;

bool identify(const fs::path& path, mode_t kind, Identity& identity) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || (status.st_mode & S_IFMT) != kind) return false;
  identity = {status.st_dev, status.st_ino};
  return true;
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

/// True when both name one file. Where there is none yet, when both would make the same.
bool same_file(const fs::path& a, const fs::path& b) {
  Identity first, second;
  const bool there = identify(a, S_IFREG, first);
  if (there != identify(b, S_IFREG, second)) return false;
  if (there) return first == second;
  std::error_code ignored;
  if (fs::exists(a, ignored) || fs::exists(b, ignored)) return false;
  return canonical_path(a) == canonical_path(b);
}

/// The names under which data sets lie: pictures, arrays, IDX and binary batches, lists of names.
bool is_data_name(const fs::path& path) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::array<std::string_view, 7> kEndings = {".png", ".jpg", ".jpeg", ".npy",
                                                        ".bin", ".gz",  ".txt"};
  return path.filename().string().ends_with("ubyte") ||
         std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
}

/// Shows `visit` every file below a folder, through links too; each folder once, for links may lead
/// in circles. What cannot be read is passed over: it is no data either.
void visit_files(const fs::path& folder, std::set<Identity>& seen,
                 const std::function<void(const fs::path&, const Identity&)>& visit) {
  Identity identity;
  if (!identify(folder, S_IFDIR, identity) || !seen.insert(identity).second) return;
  std::error_code problem;
  for (fs::directory_iterator entry(folder, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    if (identify(entry->path(), S_IFREG, identity)) {
      visit(entry->path(), identity);
    } else {
      visit_files(entry->path(), seen, visit);
    }
  }
}

[[noreturn]] void refuse(const std::string& output, const fs::path& path, const std::string& input,
                         const fs::path& read) {
  fail<ConfigError>("{} {}: would overwrite what {} reads{}", output, path.string(), input,
                    read == path ? "" : fmt::format(" ({})", read.string()));
}

}  // namespace

void CommandFiles::reads(std::string name, const fs::path& path) {
  if (!path.empty()) inputs_.push_back({std::move(name), path});
}

void CommandFiles::reads_data(const std::string& name, const Spec& spec) {
  for (const std::string_view key : data_paths(spec.name)) {
    const std::string* value = spec.find(key);
    if (!value || value->empty()) continue;
    const std::string input = fmt::format("{} {}", name, key);
    const fs::path path = *value;
    inputs_.push_back({input, path, true});
    // A batch of pictures in one file has its labels beside it.
    if (path.extension() == ".png") {
      inputs_.push_back({input, path.parent_path() / (path.stem().string() + "_labels.npy")});
    }
  }
}

void CommandFiles::writes(std::string name, const fs::path& path, std::string instead_of) {
  if (!path.empty()) outputs_.push_back({std::move(name), path, std::move(instead_of)});
}

void CommandFiles::check_outputs(const Output& one, const Output& other) const {
  if (!same_file(one.path, other.path)) return;
  if (one.name != other.name) {
    fail<ConfigError>("{} and {} both name {}", one.name, other.name, other.path.string());
  }
  fail<ConfigError>("{}: {} and {} are one file", one.name, one.path.string(), other.path.string());
}

/// One walk for all outputs, and none where nothing would be written over.
void CommandFiles::check_folder(const Input& input) const {
  std::vector<std::pair<Identity, const Output*>> written;
  for (const Output& output : outputs_) {
    Identity identity;
    if (identify(output.path, S_IFREG, identity)) written.emplace_back(identity, &output);
  }
  if (written.empty()) return;
  std::set<Identity> seen;
  visit_files(input.path, seen, [&](const fs::path& path, const Identity& identity) {
    for (const auto& [other, output] : written) {
      if (other != identity || (input.data && !is_data_name(path))) continue;
      refuse(output->name, output->path, input.name, path);
    }
  });
}

void CommandFiles::check_clashes() const {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const Output& output = outputs_[i];
    for (std::size_t j = 0; j < i; ++j) check_outputs(outputs_[j], output);
    for (const Input& input : inputs_) {
      if (output.instead_of == input.name || !same_file(output.path, input.path)) continue;
      refuse(output.name, output.path, input.name, input.path);
    }
  }
  for (const Input& input : inputs_) {
    if (is_folder(input.path)) check_folder(input);
  }
}

void CommandFiles::check() const {
  for (const Output& output : outputs_) require_writable(output.path, output.name);
  check_clashes();
}

}  // namespace gala
