#pragma once
// Processes as threads: groups whose connections are pairs of sockets, so that what processes do together can be
// tested within one.
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "gala/device/host_group.h"

namespace gala::test {

/// `sockets[a][b]`: what a holds of the connection to b.
inline std::vector<std::vector<Socket>> connected_sockets(int size) {
  std::vector<std::vector<Socket>> sockets(static_cast<std::size_t>(size));
  for (auto& of_one : sockets) of_one.resize(static_cast<std::size_t>(size));
  for (std::size_t a = 0; a < sockets.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      std::array<int, 2> pair{};
      if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()) != 0) fail("no pair of sockets");
      sockets[a][b] = Socket(pair[0]);
      sockets[b][a] = Socket(pair[1]);
    }
  }
  return sockets;
}

/// Runs `body` in a thread for each of the processes. What each of them threw, or "".
inline std::vector<std::string> run_processes(
    int size, const std::function<void(ProcessGroup&)>& body,
    std::chrono::milliseconds patience = std::chrono::seconds(60)) {
  auto sockets = connected_sockets(size);
  std::vector<std::string> errors(static_cast<std::size_t>(size));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    threads.emplace_back([&, rank, at, own = std::move(sockets[at])]() mutable {
      try {
        HostGroup group(PeerSockets(rank, std::move(own), patience));
        body(group);
      } catch (const std::exception& error) {
        errors[at] = error.what();
      }
    });
  }
  threads.clear();
  return errors;
}

}  // namespace gala::test
