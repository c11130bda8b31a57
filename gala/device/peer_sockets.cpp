#include "gala/device/peer_sockets.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace gala {
namespace {

void set(int descriptor, int level, int option, int value) {
  // What a kind of socket does not know it can do without.
  (void)::setsockopt(descriptor, level, option, &value, sizeof value);
}

void prepare(int descriptor) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags < 0 || ::fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) < 0) {
    fail("a connection to another process cannot be used: {}", std::strerror(errno));
  }
  set(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
  // A host that vanishes says nothing: within a minute the kernel finds out.
  set(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, 20);
  set(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(descriptor, IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, 60'000);
}

bool would_wait(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    if (open()) ::close(descriptor_);
    descriptor_ = other.release();
  }
  return *this;
}

Socket::~Socket() {
  if (open()) ::close(descriptor_);
}

int Socket::release() {
  return std::exchange(descriptor_, -1);
}

PeerSockets::PeerSockets(int rank, std::vector<Socket> sockets, std::chrono::milliseconds patience)
    : rank_(rank), sockets_(std::move(sockets)), patience_(patience) {
  for (const Socket& socket : sockets_) {
    if (socket.open()) prepare(socket.descriptor());
  }
}

void PeerSockets::lost(int peer) const {
  fail<PeerLost>(
      "rank {} of {} is gone: it ended, or cannot be reached any more (what it said itself tells "
      "why)",
      peer, size());
}

/// False when nothing could be sent now.
bool PeerSockets::send_some(int peer, const Parcel& parcel, Progress& progress) const {
  constexpr std::size_t kHead = sizeof(Header);
  iovec parts[2] = {{&progress.out, kHead},
                    {const_cast<std::byte*>(parcel.out.data()), parcel.out.size()}};
  std::size_t skip = progress.sent;
  for (iovec& part : parts) {
    const std::size_t here = std::min(skip, part.iov_len);
    part.iov_base = static_cast<std::byte*>(part.iov_base) + here;
    part.iov_len -= here;
    skip -= here;
  }
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  const ssize_t done = ::sendmsg(sockets_[static_cast<std::size_t>(peer)].descriptor(), &message,
                                 MSG_NOSIGNAL | MSG_DONTWAIT);
  if (done < 0 && would_wait(errno)) return false;
  if (done < 0) lost(peer);
  progress.sent += static_cast<std::size_t>(done);
  return done > 0;
}

/// How many bytes came; 0 when there are none now.
std::size_t PeerSockets::receive(int peer, std::byte* to, std::size_t size) const {
  const ssize_t done =
      ::recv(sockets_[static_cast<std::size_t>(peer)].descriptor(), to, size, MSG_DONTWAIT);
  if (done < 0 && would_wait(errno)) return 0;
  if (done <= 0) lost(peer);
  return static_cast<std::size_t>(done);
}

void PeerSockets::check_header(int peer, const Parcel& parcel, const Progress& progress) const {
  if (progress.in.number == exchanges_ && progress.in.size == parcel.in.size()) return;
  fail(
      "rank {} of {} is at another place than rank {}: it sends {} bytes as exchange {}, where {} "
      "bytes are expected as exchange {}",
      peer, size(), rank_, progress.in.size, progress.in.number, parcel.in.size(), exchanges_);
}

/// False when nothing had come.
bool PeerSockets::receive_some(int peer, const Parcel& parcel, Progress& progress) const {
  constexpr std::size_t kHead = sizeof(Header);
  std::size_t came = 0;
  if (progress.received < kHead) {
    auto* head = reinterpret_cast<std::byte*>(&progress.in);
    came = receive(peer, head + progress.received, kHead - progress.received);
    progress.received += came;
    if (progress.received < kHead) return came > 0;
    check_header(peer, parcel, progress);
  }
  const std::size_t place = progress.received - kHead;
  if (place == parcel.in.size()) return came > 0;
  const std::size_t more = receive(peer, parcel.in.data() + place, parcel.in.size() - place);
  progress.received += more;
  return came + more > 0;
}

void PeerSockets::exchange(std::span<const Parcel> parcels) {
  ++exchanges_;
  std::vector<Progress> all(sockets_.size());
  const auto complete = [&](std::size_t peer) {
    return std::pair{all[peer].sent == sizeof(Header) + parcels[peer].out.size(),
                     all[peer].received == sizeof(Header) + parcels[peer].in.size()};
  };
  for (std::size_t peer = 0; peer < all.size(); ++peer) {
    all[peer].out = {exchanges_, parcels[peer].out.size()};
    if (sockets_[peer].open()) send_some(static_cast<int>(peer), parcels[peer], all[peer]);
  }
  auto last_moved = std::chrono::steady_clock::now();
  std::vector<pollfd> waiting;
  std::vector<int> peers;
  while (true) {
    waiting.clear();
    peers.clear();
    for (std::size_t peer = 0; peer < all.size(); ++peer) {
      if (!sockets_[peer].open()) continue;
      const auto [sent, received] = complete(peer);
      if (sent && received) continue;
      const int events = (sent ? 0 : POLLOUT) | (received ? 0 : POLLIN);
      waiting.push_back({sockets_[peer].descriptor(), static_cast<short>(events), 0});
      peers.push_back(static_cast<int>(peer));
    }
    if (waiting.empty()) return;
    constexpr int kSlice = 200;  // milliseconds
    (void)::poll(waiting.data(), waiting.size(), kSlice);
    bool moved = false;
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      const auto peer = static_cast<std::size_t>(peers[i]);
      const auto [sent, received] = complete(peer);
      if (!received && (waiting[i].revents & (POLLIN | POLLHUP | POLLERR))) {
        moved |= receive_some(peers[i], parcels[peer], all[peer]);
      }
      if (!sent && (waiting[i].revents & (POLLOUT | POLLHUP | POLLERR))) {
        moved |= send_some(peers[i], parcels[peer], all[peer]);
      }
    }
    const auto now = std::chrono::steady_clock::now();
    if (moved) last_moved = now;
    if (now - last_moved > patience_) {
      fail<PeerLost>("rank {} of {} has been silent for {} s", fmt::join(peers, " and "), size(),
                     std::chrono::duration<double>(patience_).count());
    }
  }
}

void PeerSockets::check() const {
  for (std::size_t peer = 0; peer < sockets_.size(); ++peer) {
    if (!sockets_[peer].open()) continue;
    std::byte next{};
    const ssize_t done =
        ::recv(sockets_[peer].descriptor(), &next, sizeof next, MSG_DONTWAIT | MSG_PEEK);
    if (done == 0 || (done < 0 && !would_wait(errno))) lost(static_cast<int>(peer));
  }
}

}  // namespace gala
