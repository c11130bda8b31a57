#include "gala/protocol/claims.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace gala {
namespace {

/// The byte that stands for a run: 60 bits of its key, which is a hash in hexadecimal digits.
struct flock byte_of(const std::string& key, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(std::stoull(key.substr(0, 15), nullptr, 16));
  lock.l_len = 1;
  return lock;
}

}  // namespace

Claims::Claims(const std::filesystem::path& folder)
    : descriptor_(::open((folder / "claims.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {}

Claims::~Claims() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool Claims::take(const std::string& key) const {
  struct flock lock = byte_of(key, F_WRLCK);
  if (descriptor_ < 0 || fcntl(descriptor_, F_OFD_SETLK, &lock) == 0) return true;
  return errno != EAGAIN && errno != EACCES;
}

void Claims::give_back(const std::string& key) const {
  struct flock lock = byte_of(key, F_UNLCK);
  if (descriptor_ >= 0) fcntl(descriptor_, F_OFD_SETLK, &lock);
}

}  // namespace gala
