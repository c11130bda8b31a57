#pragma once
#include <ATen/ATen.h>

#include <cstdint>
#include <type_traits>

#include "gala/base/error.h"
#include "gala/view/view.h"

namespace gala {

/// What a view drew for the looks at a batch, a plain record for each. The host writes it; for a GPU it
/// lies in page-locked memory and has a place on the device, where queued work brings it. None of this
/// moves as long as the view lives, so captured work can hold the addresses.
template <class Record>
class Drawn {
  static_assert(std::is_trivially_copyable_v<Record>);

 public:
  void attach(at::Device device) {
    const std::int64_t bytes = View::kMostLooks * static_cast<std::int64_t>(sizeof(Record));
    const auto options = at::TensorOptions(at::kByte);
    host_ = at::zeros({bytes}, options.pinned_memory(device.is_cuda()));
    device_ = device.is_cuda() ? at::zeros({bytes}, options.device(device)) : at::Tensor();
  }

  /// Room for the looks 0 .. count-1.
  Record* begin(int count) {
    if (!host_.defined()) fail("a view draws after it was attached");
    if (count < 1 || count > View::kMostLooks) {
      fail("a view draws 1 to {} looks at a batch, not {}", View::kMostLooks, count);
    }
    count_ = count;
    return static_cast<Record*>(host_.mutable_data_ptr());
  }

  const Record* host(int which) const { return start(host_, which); }
  /// Its place on the device; null where that is no GPU.
  Record* device(int which) const { return device_.defined() ? start(device_, which) : nullptr; }

 private:
  Record* start(const at::Tensor& bytes, int which) const {
    if (which < 0 || which >= count_) {
      fail("there is no look {}: {} were drawn", which, count_);
    }
    return static_cast<Record*>(bytes.mutable_data_ptr()) + which;
  }

  at::Tensor host_, device_;
  int count_ = 0;
};

}  // namespace gala
