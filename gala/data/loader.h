#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gala/data/float_range.h"
#include "gala/data/stream.h"
#include "gala/data/transform.h"
#include "gala/model/preprocessing.h"

namespace gala {

/// Pictures that are answered together. Labels and domains are for scoring alone.
struct Batch {
  at::Tensor images;                    ///< [N, 3, H, W], float32, on the loader's device
  std::vector<std::int64_t> labels;     ///< -1 where unknown
  std::vector<std::int64_t> positions;  ///< in the stream
  std::vector<std::int32_t> domains;    ///< of each picture
  std::int32_t segment = 0;             ///< of the stream, of the first picture
  std::int64_t number = 0;              ///< 0, 1, ... over the whole stream

  std::int64_t size() const { return static_cast<std::int64_t>(positions.size()); }
};

struct LoaderOptions {
  std::int64_t batch_size = 32;
  int threads = 2;                  ///< 0: everything happens inside next()
  int prefetch = 4;                 ///< batches made ahead of the one asked for, at most
  std::int64_t first_position = 0;  ///< begin here; must be the first position of a batch
  bool skip_unreadable = false;     ///< leave unreadable pictures out of their batch and count them
  at::Device device = at::kCPU;     ///< where the batches are wanted
};

/// Makes the batches of a stream in order, on threads that work ahead. The result does not depend
/// on the number of threads. For a GPU the next batch is copied there while the caller works on the
/// one it has. Destroying it stops the threads after the picture at hand.
class Loader {
 public:
  /// Evaluation: resize and normalise. The stream must outlive the loader.
  Loader(const Stream& stream, const Preprocessing& preprocessing, const LoaderOptions& options);
  /// With a transform of one's own, which must outlive the loader too.
  Loader(const Stream& stream, const Transform& transform, const LoaderOptions& options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next batch, or nothing at the end. Throws what reading one of its pictures threw (the
  /// first in stream order); later calls throw it again. With `skip_unreadable` a FormatError only
  /// leaves the picture out; a batch of which nothing is left is passed over.
  std::optional<Batch> next();

  /// Batches of the whole stream, those before first_position included.
  std::int64_t batch_count() const;
  /// Pictures left out so far, as messages that begin with the file's path.
  const std::vector<std::string>& skipped() const;
  /// What the pictures of floats given out so far hold; empty where all are of bytes.
  const FloatRange& float_range() const;

 private:
  struct Work;
  std::unique_ptr<Work> work_;
};

}  // namespace gala
