#include "gala/device/upload.h"

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <utility>

namespace gala {

Upload::Upload(at::Tensor tensor, std::optional<c10::Event> done)
    : tensor_(std::move(tensor)), done_(std::move(done)) {}

at::Tensor Upload::take() {
  if (done_) {
    const c10::impl::VirtualGuardImpl streams(tensor_.device().type());
    const c10::Stream current = streams.getStream(tensor_.device());
    done_->block(current);
    tensor_.record_stream(current);  // its memory belongs to the stream that copied
  }
  return std::move(tensor_);
}

Uploader::Uploader(at::Device device) : device_(device) {
  if (device.is_cpu()) return;
  // The urgent ones: nothing but copies goes there.
  stream_ = c10::impl::VirtualGuardImpl(device.type())
                .getStreamFromGlobalPool(device, /*isHighPriority=*/true);
}

Upload Uploader::begin(const at::Tensor& host) const {
  if (!stream_) return {host, std::nullopt};
  const c10::StreamGuard guard(*stream_);
  at::Tensor copy = host.to(device_, /*non_blocking=*/true);
  c10::Event done(device_.type());
  done.record(*stream_);
  return {std::move(copy), std::move(done)};
}

}  // namespace gala
