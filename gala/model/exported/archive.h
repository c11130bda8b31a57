#pragma once
#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "gala/model/zip_reader.h"

namespace gala::exported {

/// What `torch.export.save` wrote: a zip of raw weights and a JSON graph. Nothing in it is executed, and
/// its pickled entries (the sample inputs) are not looked at. Every failure is a FormatError.
class Archive {
 public:
  explicit Archive(const std::filesystem::path& path);

  const std::string& path() const { return path_; }
  /// The exported program, an object; its schema's major version is one that is read.
  const nlohmann::json& program() const { return program_; }
  /// The JSON object of the extra file `gala.json`; empty when there is none.
  const nlohmann::json& metadata() const { return metadata_; }
  /// A parameter, buffer or constant by its name in the program, in memory of its own.
  at::Tensor tensor(const std::string& name) const;
  /// The type of its numbers, without reading them; nothing for one that is not read.
  std::optional<at::ScalarType> type_of(const std::string& name) const;
  /// True when both names stand for the same stored tensor, as tied weights do.
  bool is_same(const std::string& one, const std::string& other) const;

  [[noreturn]] void refuse(const std::string& problem) const;

 private:
  /// Where the bytes of a tensor lie, and how.
  struct Payload {
    std::string entry;
    nlohmann::json config;
  };

  std::string find_root() const;
  std::string find_model() const;
  nlohmann::json read_json(const std::string& entry) const;
  void read_payloads(const std::string& folder, const std::string& config);
  const Payload& payload(const std::string& name) const;
  at::Tensor read_tensor(const std::string& name) const;

  std::string path_;
  ZipReader zip_;
  std::string root_;  ///< before the name of every entry
  nlohmann::json program_;
  nlohmann::json metadata_ = nlohmann::json::object();
  std::map<std::string, Payload, std::less<>> payloads_;
};

}  // namespace gala::exported
