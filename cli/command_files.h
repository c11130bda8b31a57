#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "gala/base/spec.h"

namespace gala {

/// The files of one call of the program. A command says which it reads and which it will write, and
/// `check` refuses what would destroy data: a file that is read and written, or written twice. Files
/// are told by what they are, not by how their paths are spelled: links, symbolic and hard, lead
/// nobody astray. Devices such as /dev/null are no files.
class CommandFiles {
 public:
  /// `name` is the flag or word that the user gave; an empty path names nothing. Of a folder every
  /// file counts, in all folders below it.
  void reads(std::string name, const std::filesystem::path& path);
  /// What a data spec names, under "NAME KEY". Of a folder those files count whose names are those of
  /// pictures, arrays, labels and lists of names: others in it are not data.
  void reads_data(const std::string& name, const Spec& spec);
  /// `instead_of` is the name of an input whose place this file may take.
  void writes(std::string name, const std::filesystem::path& path, std::string instead_of = "");

  /// Throws ConfigError that names both when a file would be written over one that is read, or twice.
  void check_clashes() const;
  /// The same, and when one cannot be made. Leaves no trace.
  void check() const;

 private:
  struct Input {
    std::string name;
    std::filesystem::path path;
    bool data = false;  ///< of a folder only data counts
  };
  struct Output {
    std::string name;
    std::filesystem::path path;
    std::string instead_of;
  };

  void check_outputs(const Output& one, const Output& other) const;
  void check_folder(const Input& input) const;

  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
};

}  // namespace gala
