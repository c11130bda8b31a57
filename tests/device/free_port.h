#pragma once
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

#include "gala/device/peer_sockets.h"

namespace gala::test {

/// A port of this host that nobody listens at.
inline std::uint16_t free_port() {
  const Socket socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket.descriptor(), any, size) != 0) fail("no port is free");
  if (::getsockname(socket.descriptor(), any, &size) != 0) fail("no port is free");
  return ntohs(address.sin_port);
}

}  // namespace gala::test
