#include "gala/device/rendezvous.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <cstring>
#include <random>
#include <sstream>
#include <string>
#include <thread>

#include "gala/base/interrupt.h"
#include "gala/base/words.h"

namespace gala {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kPause{50};
/// How long one attempt to connect, or a stranger at our door, may take.
constexpr milliseconds kAttempt{3000};

/// Asks again and again; false when it did not become true in time.
template <class Ready>
bool becomes_true(Clock::time_point deadline, const Ready& ready) {
  while (!ready()) {
    if (interrupted()) throw Interrupted("stopped while waiting for the other processes");
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

struct Address {
  sockaddr_storage storage{};
  socklen_t size = sizeof(sockaddr_storage);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
  void set_port(std::uint16_t port) {
    // The port lies at the same place in both.
    reinterpret_cast<sockaddr_in*>(&storage)->sin_port = htons(port);
  }
  std::uint16_t port() const {
    return ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
  }
  bool loopback() const {
    if (family() == AF_INET) {
      const auto* four = reinterpret_cast<const sockaddr_in*>(&storage);
      return (ntohl(four->sin_addr.s_addr) >> 24) == 127;
    }
    const auto* six = reinterpret_cast<const sockaddr_in6*>(&storage);
    return IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
  }
  std::string text() const {
    char host[NI_MAXHOST] = {};
    ::getnameinfo(get(), size, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
    return host;
  }
};

/// The addresses of a name.
std::vector<Address> resolve(const std::string& host, std::uint16_t port, int flags = 0) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  if (const int code = ::getaddrinfo(host.c_str(), nullptr, &hints, &found); code != 0) {
    fail<ConfigError>("MASTER_ADDR {}: {}", host, ::gai_strerror(code));
  }
  std::vector<Address> addresses;
  for (const addrinfo* at = found; at; at = at->ai_next) {
    if (at->ai_family != AF_INET && at->ai_family != AF_INET6) continue;
    Address address;
    std::memcpy(&address.storage, at->ai_addr, at->ai_addrlen);
    address.size = at->ai_addrlen;
    address.set_port(port);
    addresses.push_back(address);
  }
  ::freeaddrinfo(found);
  return addresses;
}

/// Waits for an event of a socket.
bool wait_for(int descriptor, short events, milliseconds most) {
  pollfd waiting{descriptor, events, 0};
  return ::poll(&waiting, 1, static_cast<int>(most.count())) > 0;
}

Address local_address(const Socket& socket) {
  Address address;
  ::getsockname(socket.descriptor(), address.get(), &address.size);
  return address;
}

/// True where a socket met itself, as one that calls a free port of its own host now and then does.
bool meets_itself(const Socket& socket) {
  Address other;
  if (::getpeername(socket.descriptor(), other.get(), &other.size) != 0) return true;
  const Address own = local_address(socket);
  return own.port() == other.port() && own.text() == other.text();
}

/// Not open where nobody answers.
Socket connect_to(const Address& address) {
  Socket socket(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.open()) return Socket();
  if (::connect(socket.descriptor(), address.get(), address.size) != 0) {
    if (errno != EINPROGRESS || !wait_for(socket.descriptor(), POLLOUT, kAttempt)) return Socket();
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return Socket();
  }
  return meets_itself(socket) ? Socket() : std::move(socket);
}

/// This host's address on the way to rank 0, once somebody answers there.
Address reach(const ProcessPlace& place, Clock::time_point deadline) {
  const std::vector<Address> addresses = resolve(place.host, place.port);
  Address own;
  const auto answered = [&] {
    for (const Address& address : addresses) {
      const Socket socket = connect_to(address);
      if (!socket.open()) continue;
      own = local_address(socket);
      return true;
    }
    return false;
  };
  if (!becomes_true(deadline, answered)) {
    fail<ConfigError>(
        "{}: nobody answers at MASTER_ADDR {}, MASTER_PORT {} (is rank 0 running, and can its host "
        "be "
        "reached from here?)",
        place.name(), place.host, place.port);
  }
  return own;
}

/// A door for the others: open to this host alone where all of them are on it.
Socket listen_at(const Address& own, bool here_alone, int backlog) {
  Address door;
  door.storage.ss_family = static_cast<sa_family_t>(own.family());
  door.size = own.family() == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if (here_alone) door = own;
  door.set_port(0);
  Socket socket(::socket(door.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.open() || ::bind(socket.descriptor(), door.get(), door.size) != 0 ||
      ::listen(socket.descriptor(), backlog) != 0) {
    fail("no connections of other processes can be accepted: {}", std::strerror(errno));
  }
  return socket;
}

/// Where others may reach this host: its address on the way to rank 0 and, where that means this host to
/// anybody (a name that the host itself resolves to 127.0.1.1), those of its interfaces.
std::vector<std::string> reachable_at(const Address& own, bool here_alone) {
  std::vector<std::string> texts = {own.text()};
  ifaddrs* interfaces = nullptr;
  if (here_alone || !own.loopback() || ::getifaddrs(&interfaces) != 0) return texts;
  for (const ifaddrs* at = interfaces; at; at = at->ifa_next) {
    if (!at->ifa_addr || at->ifa_addr->sa_family != own.family()) continue;
    if (!(at->ifa_flags & IFF_UP) || (at->ifa_flags & IFF_LOOPBACK)) continue;
    Address address;
    address.size = own.size;
    std::memcpy(&address.storage, at->ifa_addr, own.size);
    // An address with a scope means something to this host alone.
    if (const std::string text = address.text(); text.find('%') == std::string::npos) {
      texts.push_back(text);
    }
  }
  ::freeifaddrs(interfaces);
  return texts;
}

/// What is said first on a connection, and answered: who is there, and that both are of one group.
struct Greeting {
  char token[32] = {};
  std::int32_t from = 0, to = 0;
};

bool send_greeting(const Socket& socket, const Greeting& greeting) {
  return ::send(socket.descriptor(), &greeting, sizeof greeting, MSG_NOSIGNAL) == sizeof greeting;
}

bool receive_greeting(const Socket& socket, Greeting& greeting) {
  const auto deadline = Clock::now() + kAttempt;
  std::size_t have = 0;
  while (have < sizeof greeting && Clock::now() < deadline) {
    if (!wait_for(socket.descriptor(), POLLIN, kAttempt)) return false;
    const ssize_t more = ::recv(socket.descriptor(), reinterpret_cast<char*>(&greeting) + have,
                                sizeof greeting - have, 0);
    if (more <= 0) return false;
    have += static_cast<std::size_t>(more);
  }
  return have == sizeof greeting;
}

/// LibTorch's store, with its errors in our words.
class Meeting {
 public:
  Meeting(const ProcessPlace& place, milliseconds patience)
      : place_(place), deadline_(Clock::now() + patience) {
    const bool serves = place.rank == 0 && !place.agent_listens;
    if (!serves) own_ = reach(place, deadline_);
    c10d::TCPStoreOptions options;
    options.port = place.port;
    options.isServer = serves;
    options.waitWorkers = false;
    options.timeout = patience;
    in_words_of_ours([&] { store_ = c10::make_intrusive<c10d::TCPStore>(place.host, options); });
    if (serves) own_ = reach(place, deadline_);
  }

  const Address& own() const { return own_; }
  Clock::time_point deadline() const { return deadline_; }

  void set(const std::string& key, const std::string& value) {
    in_words_of_ours(
        [&] { store_->set(full(key), std::vector<std::uint8_t>(value.begin(), value.end())); });
  }
  std::int64_t add(const std::string& key) {
    std::int64_t count = 0;
    in_words_of_ours([&] { count = store_->add(full(key), 1); });
    return count;
  }
  /// What rank `from` has set, or will set.
  std::string get(const std::string& key, int from) {
    std::string value;
    in_words_of_ours([&] {
      if (!becomes_true(deadline_, [&] { return store_->check({full(key)}); })) {
        fail<ConfigError>("{}: rank {} did not come", place_.name(), from);
      }
      const std::vector<std::uint8_t> bytes = store_->get(full(key));
      value.assign(bytes.begin(), bytes.end());
    });
    return value;
  }

 private:
  std::string full(const std::string& key) const {
    return fmt::format("gala/{}/{}", place_.attempt, key);
  }

  template <class Call>
  void in_words_of_ours(const Call& call) const {
    try {
      call();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& problem) {
      fail<ConfigError>("{}: meeting at MASTER_ADDR {}, MASTER_PORT {} failed: {}", place_.name(),
                        place_.host, place_.port, in_words(problem));
    }
  }

  ProcessPlace place_;
  Clock::time_point deadline_;
  Address own_;
  c10::intrusive_ptr<c10d::TCPStore> store_;
};

std::string random_token() {
  std::random_device source;
  std::string token;
  for (int word = 0; word < 4; ++word) token += fmt::format("{:08x}", source() & 0xffffffffU);
  return token;
}

/// Connects this process, once it has told where it listens, to all others: it calls those of lower rank and
/// is called by those of higher rank.
class Introductions {
 public:
  Introductions(const ProcessPlace& place, Meeting& meeting, const Socket& door)
      : place_(place), meeting_(meeting), door_(door) {
    sockets_.resize(static_cast<std::size_t>(place.size));
    const std::string token = meeting.get("token", 0);
    std::copy_n(token.begin(), std::min(token.size(), sizeof own_.token), own_.token);
    own_.from = place.rank;
  }

  std::vector<Socket> make() {
    for (int peer = 0; peer < place_.rank; ++peer) call(peer);
    if (!becomes_true(meeting_.deadline(), [&] { return answer_all(); })) {
      for (int peer = place_.rank + 1; peer < place_.size; ++peer) {
        if (!at(peer).open()) fail<ConfigError>("{}: rank {} did not come", place_.name(), peer);
      }
    }
    return std::move(sockets_);
  }

 private:
  Socket& at(int peer) { return sockets_[static_cast<std::size_t>(peer)]; }

  bool is_ours(const Greeting& greeting) const {
    return std::memcmp(greeting.token, own_.token, sizeof own_.token) == 0 &&
           greeting.to == place_.rank;
  }

  void call(int peer) {
    std::istringstream words(meeting_.get(fmt::format("rank/{}", peer), peer));
    std::uint16_t port = 0;
    words >> port;
    std::vector<Address> addresses;
    for (std::string text; words >> text;) {
      for (const Address& address : resolve(text, port, AI_NUMERICHOST)) {
        addresses.push_back(address);
      }
    }
    const auto answered = [&] {
      for (const Address& address : addresses) {
        Socket socket = connect_to(address);
        Greeting greeting = own_;
        greeting.to = peer;
        if (!socket.open() || !send_greeting(socket, greeting)) continue;
        if (!receive_greeting(socket, greeting) || !is_ours(greeting)) continue;
        at(peer) = std::move(socket);
        return true;
      }
      return false;
    };
    if (!becomes_true(meeting_.deadline(), answered)) {
      fail<ConfigError>("{}: rank {} cannot be reached from here (it listens at {}, port {})",
                        place_.name(), peer, addresses.empty() ? "nothing" : addresses[0].text(),
                        port);
    }
  }

  /// Answers who has called; true when nobody is missing.
  bool answer_all() {
    while (true) {
      Socket socket(::accept4(door_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!socket.open()) break;
      Greeting greeting;
      if (!receive_greeting(socket, greeting) || !is_ours(greeting)) continue;
      const int peer = greeting.from;
      if (peer <= place_.rank || peer >= place_.size || at(peer).open()) continue;
      greeting = own_;
      greeting.to = peer;
      if (send_greeting(socket, greeting)) at(peer) = std::move(socket);
    }
    for (int peer = place_.rank + 1; peer < place_.size; ++peer) {
      if (!at(peer).open()) return false;
    }
    return true;
  }

  const ProcessPlace& place_;
  Meeting& meeting_;
  const Socket& door_;
  std::vector<Socket> sockets_;
  Greeting own_;
};

bool names_this_host_alone(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

}  // namespace

PeerSockets meet(const ProcessPlace& place, milliseconds patience) {
  Meeting meeting(place, patience);
  if (meeting.add(fmt::format("here/{}", place.rank)) > 1) {
    fail<ConfigError>("RANK {} is there twice: each of the {} processes needs another", place.rank,
                      place.size);
  }
  const bool here_alone = names_this_host_alone(place.host) && meeting.own().loopback();
  const Socket door = listen_at(meeting.own(), here_alone, place.size);
  if (place.rank == 0) meeting.set("token", random_token());
  meeting.set(fmt::format("rank/{}", place.rank),
              fmt::format("{} {}", local_address(door).port(),
                          fmt::join(reachable_at(meeting.own(), here_alone), " ")));
  PeerSockets sockets(place.rank, Introductions(place, meeting, door).make(), patience);
  // The store ends with rank 0's part in it: everybody must be through.
  sockets.exchange(std::vector<Parcel>(static_cast<std::size_t>(place.size)));
  return sockets;
}

}  // namespace gala
