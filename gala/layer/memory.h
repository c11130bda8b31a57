#pragma once
#include <cstdint>
#include <memory>
#include <utility>

namespace gala {

/// A piece of memory, on the host or on a device; given back when its last holder ends.
class Memory {
 public:
  Memory() = default;
  Memory(std::shared_ptr<void> begin, std::int64_t bytes)
      : begin_(std::move(begin)), bytes_(bytes) {}

  template <class T = float>
  T* data() const {
    return static_cast<T*>(begin_.get());
  }
  std::int64_t bytes() const { return bytes_; }
  explicit operator bool() const { return begin_ != nullptr; }

 private:
  std::shared_ptr<void> begin_;
  std::int64_t bytes_ = 0;
};

}  // namespace gala
