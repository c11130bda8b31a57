#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <optional>

namespace gala {

/// A copy on another device that may still be under way.
class Upload {
 public:
  Upload(at::Tensor tensor, std::optional<c10::Event> done);
  /// The copy, for the calling thread's current stream: what is queued there from now on waits for
  /// it. Once.
  at::Tensor take();

 private:
  at::Tensor tensor_;
  std::optional<c10::Event> done_;
};

/// Copies host memory to a GPU beside the work that goes on there, on a stream of its own. For the
/// CPU it hands back what it was given.
class Uploader {
 public:
  explicit Uploader(at::Device device);
  /// Begins a copy. Only from page-locked memory does it run beside other work.
  Upload begin(const at::Tensor& host) const;

 private:
  at::Device device_;
  std::optional<c10::Stream> stream_;
};

}  // namespace gala
