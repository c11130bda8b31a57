#include "gala/device/process_group.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "gala/device/host_group.h"
#include "gala/device/rendezvous.h"

namespace gala {

bool ProcessGroup::any(bool mine) {
  at::Tensor count = at::full({1}, mine ? 1 : 0, at::kLong);
  sum(count);
  return *count.const_data_ptr<std::int64_t>() > 0;
}

std::unique_ptr<ProcessGroup> open_process_group(const ProcessPlace& place, at::Device device,
                                                 std::chrono::milliseconds patience) {
  return with_nccl(std::make_unique<HostGroup>(meet(place, patience)), device);
}

std::vector<std::string> ProcessGroup::gather(const std::string& mine) {
  const auto number = [](std::size_t value) {
    return at::full({1}, static_cast<std::int64_t>(value), at::kLong);
  };
  const at::Tensor lengths = gather(number(mine.size()));
  const auto* length = lengths.const_data_ptr<std::int64_t>();
  const std::int64_t longest = *std::max_element(length, length + size());
  at::Tensor padded = at::zeros({longest}, at::kByte);
  std::copy(mine.begin(), mine.end(), padded.mutable_data_ptr<std::uint8_t>());
  const at::Tensor all = gather(padded);
  std::vector<std::string> result;
  for (int rank = 0; rank < size(); ++rank) {
    const auto* text = all.const_data_ptr<std::uint8_t>() + rank * longest;
    result.emplace_back(text, text + length[rank]);
  }
  return result;
}

}  // namespace gala
