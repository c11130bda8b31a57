#pragma once
// Stands in for LibTorch where only the names, options and defaults of a method's parts are wanted: their
// classes are declared with it and never made. The wheel then links no LibTorch.
#include <cstdint>
#include <initializer_list>

namespace c10 {

enum class DeviceType { CPU };

}  // namespace c10

namespace at {

inline constexpr c10::DeviceType kCPU = c10::DeviceType::CPU;

enum class ScalarType { Byte, Float };
inline constexpr ScalarType kByte = ScalarType::Byte, kFloat = ScalarType::Float;
enum class MemoryFormat { Contiguous, ChannelsLast };

struct Device {
  Device(c10::DeviceType) {}  // NOLINT: as LibTorch's
  bool is_cuda() const { return false; }
};

using IntArrayRef = std::initializer_list<std::int64_t>;

struct TensorOptions {
  explicit TensorOptions(ScalarType) {}
  TensorOptions pinned_memory(bool) const { return *this; }
  TensorOptions device(Device) const { return *this; }
};

/// Knows how many values it has: blocks are named by the largest family of them.
struct Tensor {
  std::int64_t count = 0;
  std::int64_t numel() const { return count; }
  bool defined() const { return false; }
  void* mutable_data_ptr() const { return nullptr; }
  TensorOptions options() const { return TensorOptions(kFloat); }
};

inline Tensor zeros(IntArrayRef, TensorOptions) {
  return {};
}

}  // namespace at
