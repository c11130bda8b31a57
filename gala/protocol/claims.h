#pragma once
#include <filesystem>
#include <string>

namespace gala {

/// Who is at work on which run, among programs that share a store: locks on bytes of claims.lock. A
/// claim ends with its program at the latest, however that ends. Where the file system knows no locks
/// every claim succeeds: then work may be done twice, but the store still keeps it once.
class Claims {
 public:
  /// The folder must be there.
  explicit Claims(const std::filesystem::path& folder);
  ~Claims();
  Claims(const Claims&) = delete;
  Claims& operator=(const Claims&) = delete;

  /// False while another program (or another object of this class) has it.
  bool take(const std::string& key) const;
  void give_back(const std::string& key) const;

 private:
  int descriptor_;
};

}  // namespace gala
