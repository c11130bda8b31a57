#pragma once
#include <string>
#include <vector>

#include "gala/step/step_record.h"

namespace gala {

/// The cosines of every step of a run, for a file beside the store (docs/records.md). Where it would
/// become too large, only every second, fourth, ... step is kept.
class Trace {
 public:
  static constexpr std::size_t kLargest = 200'000;  ///< bytes of the file

  void add(const StepRecord& step);
  /// The file: gzipped JSON lines.
  std::string compressed(const std::string& key, const LayerPartition& layers) const;

 private:
  std::vector<std::string> lines_;
};

/// Packs a text as a gzip file, and unpacks one. Throws Error when it is none.
std::string gzip(const std::string& text);
std::string gunzip(const std::string& packed);

}  // namespace gala
