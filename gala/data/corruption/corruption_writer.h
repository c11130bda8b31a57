#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "gala/data/corruption/corruption.h"
#include "gala/data/dataset.h"

namespace gala {

struct CorruptionWriterOptions {
  std::vector<int> severities = {1, 2, 3, 4, 5};
  CorruptionSet set = CorruptionSet::kCifar;
  std::uint64_t seed = 0;
  int threads = 1;
  std::shared_ptr<const FrostTextures> textures;  ///< none: made ones
  int quality = 0;  ///< of JPEG, there and back, when all is done; 0: none
  /// Called by the caller's thread with the number of images done so far in this file.
  std::function<void(std::int64_t)> progress;
};

/// Writes `clean`, corrupted, as uint8 [severities * N, side, side, 3]: the rows of the first severity,
/// then those of the next, as the published arrays of CIFAR are. The bytes do not depend on the number of
/// threads. The file appears whole or not at all. Throws ConfigError for pictures that are not bytes of the
/// set's size, FormatError for unreadable ones, Interrupted when the user asked to stop.
void write_corrupted(const std::filesystem::path& path, const Dataset& clean, Corruption corruption,
                     const CorruptionWriterOptions& options);

/// Writes the labels of `clean`, `repeats` times over: uint8 when they fit, else int64.
void write_labels(const std::filesystem::path& path, const Dataset& clean, int repeats);

}  // namespace gala
