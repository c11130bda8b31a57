#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gala/base/error.h"

namespace gala {

/// Another process ended, cannot be reached any more, or is silent for too long.
class PeerLost : public Error {
 public:
  using Error::Error;
};

/// An open socket, closed when it ends.
class Socket {
 public:
  explicit Socket(int descriptor = -1) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(other.release()) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  int descriptor() const { return descriptor_; }
  bool open() const { return descriptor_ >= 0; }
  int release();

 private:
  int descriptor_;
};

/// What goes to another process and what is expected of it, in bytes.
struct Parcel {
  std::span<const std::byte> out;
  std::span<std::byte> in;
};

/// A connection to each of the other processes. All of them make the same exchanges in the same order.
class PeerSockets {
 public:
  /// `sockets[rank]` is not open; the others are connected streams. A process that says nothing for
  /// `patience` is given up.
  PeerSockets(int rank, std::vector<Socket> sockets, std::chrono::milliseconds patience);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(sockets_.size()); }

  /// Sends to every other process and receives from it, all at once: `parcels[r]` is for rank r. Throws
  /// PeerLost, and Error where the others are at another exchange than this one.
  void exchange(std::span<const Parcel> parcels);
  /// Throws PeerLost where another process has ended; waits for nothing.
  void check() const;

 private:
  struct Header {
    std::uint64_t number = 0, size = 0;
  };
  /// How far one connection is.
  struct Progress {
    Header out, in;
    std::size_t sent = 0, received = 0;
  };

  bool send_some(int peer, const Parcel& parcel, Progress& progress) const;
  bool receive_some(int peer, const Parcel& parcel, Progress& progress) const;
  std::size_t receive(int peer, std::byte* to, std::size_t size) const;
  void check_header(int peer, const Parcel& parcel, const Progress& progress) const;
  [[noreturn]] void lost(int peer) const;

  int rank_;
  std::vector<Socket> sockets_;
  std::chrono::milliseconds patience_;
  std::uint64_t exchanges_ = 0;
};

}  // namespace gala
