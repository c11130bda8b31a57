#pragma once
#include <vector>

#include "gala/device/peer_sockets.h"
#include "gala/device/process_group.h"

namespace gala {

/// Sums over connections to every other process. Where there is much to sum, each process sums a part of it
/// and sends that to the others; a little goes to everybody at once. Both ways add in double, in the order of
/// ranks. Tensors on a GPU go through host memory.
class HostGroup : public ProcessGroup {
 public:
  explicit HostGroup(PeerSockets sockets)
      : ProcessGroup(sockets.rank(), sockets.size()), sockets_(std::move(sockets)) {}

  void sum(at::Tensor& values) override;
  at::Tensor gather(const at::Tensor& mine) override;
  std::string from_first(const std::string& bytes) override;
  void wait_for(at::Device device) override;
  /// Throws PeerLost where another process has ended.
  void check() const { sockets_.check(); }

  using ProcessGroup::gather;

 private:
  template <class T>
  void sum_all(std::span<T> values);
  template <class T>
  void sum_parts(std::span<T> values);
  std::span<std::byte> gather_bytes(std::span<const std::byte> mine);
  std::span<std::byte> scratch(std::size_t size);

  PeerSockets sockets_;
  std::vector<std::byte> scratch_;
};

/// A group whose tensors on `device` are summed by NCCL, and all else by `host`; gives `host` back where
/// that cannot be.
std::unique_ptr<ProcessGroup> with_nccl(std::unique_ptr<HostGroup> host, at::Device device);

}  // namespace gala
