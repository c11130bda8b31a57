#include "gala/device/host_group.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstring>

namespace gala {
namespace {

/// Bytes up to which everything goes to everybody: one trip in place of two.
constexpr std::size_t kLittle = 32 * 1024;

template <class T>
using Wide = std::conditional_t<std::is_integral_v<T>, T, double>;

template <class T>
std::span<const std::byte> bytes_of(std::span<const T> values) {
  return std::as_bytes(values);
}

/// `parts` holds `count` values of each rank, one rank behind the other.
template <class T>
void add_in_order(std::span<const T> parts, int ranks, std::span<T> sums) {
  for (std::size_t i = 0; i < sums.size(); ++i) {
    Wide<T> sum{};
    for (int rank = 0; rank < ranks; ++rank) {
      sum += static_cast<Wide<T>>(parts[static_cast<std::size_t>(rank) * sums.size() + i]);
    }
    sums[i] = static_cast<T>(sum);
  }
}

template <class T>
std::span<T> as(std::span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

template <class T>
std::span<T> values_of(at::Tensor& tensor) {
  return {tensor.mutable_data_ptr<T>(), static_cast<std::size_t>(tensor.numel())};
}

}  // namespace

std::span<std::byte> HostGroup::scratch(std::size_t size) {
  if (scratch_.size() < size) scratch_.resize(size);
  return std::span(scratch_).first(size);
}

/// What every process gave, one rank behind the other.
std::span<std::byte> HostGroup::gather_bytes(std::span<const std::byte> mine) {
  const std::size_t each = mine.size();
  const std::span<std::byte> all = scratch(each * static_cast<std::size_t>(size()));
  std::vector<Parcel> parcels;
  for (int peer = 0; peer < size(); ++peer) {
    parcels.push_back({mine, all.subspan(static_cast<std::size_t>(peer) * each, each)});
  }
  if (each > 0) std::memcpy(parcels[static_cast<std::size_t>(rank())].in.data(), mine.data(), each);
  sockets_.exchange(parcels);
  return all;
}

template <class T>
void HostGroup::sum_all(std::span<T> values) {
  const std::span<T> all = as<T>(gather_bytes(bytes_of<T>(values)));
  add_in_order<T>(all, size(), values);
}

/// Each process sums the part of its rank.
template <class T>
void HostGroup::sum_parts(std::span<T> values) {
  const auto ranks = static_cast<std::size_t>(size());
  const auto part = [&](std::size_t of) {
    const std::size_t begin = values.size() * of / ranks;
    return values.subspan(begin, values.size() * (of + 1) / ranks - begin);
  };
  const auto own_rank = static_cast<std::size_t>(rank());
  const std::span<T> own = part(own_rank);
  const std::span<T> came = as<T>(scratch(own.size_bytes() * ranks));
  std::vector<Parcel> parcels;
  for (std::size_t peer = 0; peer < ranks; ++peer) {
    const std::span<T> theirs = came.subspan(peer * own.size(), own.size());
    if (peer == own_rank) std::copy(own.begin(), own.end(), theirs.begin());
    parcels.push_back({bytes_of<T>(part(peer)), std::as_writable_bytes(theirs)});
  }
  sockets_.exchange(parcels);
  add_in_order<T>(came, size(), own);
  parcels.clear();
  for (std::size_t peer = 0; peer < ranks; ++peer) {
    parcels.push_back({bytes_of<T>(own), std::as_writable_bytes(part(peer))});
  }
  sockets_.exchange(parcels);
}

void HostGroup::sum(at::Tensor& values) {
  const c10::NoGradGuard no_grad;
  if (!values.is_cpu()) {
    at::Tensor host = values.to(at::kCPU);
    sum(host);
    values.copy_(host);
    return;
  }
  if (!values.is_contiguous()) fail("only contiguous tensors can be summed over processes");
  const auto add = [&]<class T>(std::span<T> all) {
    if (all.size_bytes() <= kLittle) {
      sum_all(all);
    } else {
      sum_parts(all);
    }
  };
  switch (values.scalar_type()) {
    case at::kFloat:
      return add(values_of<float>(values));
    case at::kDouble:
      return add(values_of<double>(values));
    case at::kLong:
      return add(values_of<std::int64_t>(values));
    default:
      fail("tensors of {} cannot be summed over processes", c10::toString(values.scalar_type()));
  }
}

at::Tensor HostGroup::gather(const at::Tensor& mine) {
  const c10::NoGradGuard no_grad;
  const at::Tensor host = mine.detach().to(at::kCPU).contiguous();
  const auto* data = static_cast<const std::byte*>(host.const_data_ptr());
  const std::span<std::byte> all = gather_bytes({data, host.nbytes()});
  std::vector<std::int64_t> shape = {size()};
  shape.insert(shape.end(), host.sizes().begin(), host.sizes().end());
  const at::Tensor result = at::empty(shape, host.options());
  if (!all.empty()) std::memcpy(result.mutable_data_ptr(), all.data(), all.size());
  return result.to(mine.device());
}

std::string HostGroup::from_first(const std::string& bytes) {
  std::int64_t length = leads() ? static_cast<std::int64_t>(bytes.size()) : 0;
  sum_all(std::span(&length, 1));
  std::string result = leads() ? bytes : std::string(static_cast<std::size_t>(length), '\0');
  std::vector<Parcel> parcels(static_cast<std::size_t>(size()));
  const std::span<char> text(result);
  if (leads()) {
    for (Parcel& parcel : parcels) parcel.out = bytes_of<char>(text);
  } else {
    parcels[0].in = std::as_writable_bytes(text);
  }
  sockets_.exchange(parcels);
  return result;
}

void HostGroup::wait_for(at::Device) {
  // Nothing on a device waits for another process here: sums come through the host.
}

}  // namespace gala
