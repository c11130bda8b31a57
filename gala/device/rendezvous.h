#pragma once
#include "gala/device/peer_sockets.h"
#include "gala/device/process_place.h"

namespace gala {

/// Connects the processes of a group to each other. They find themselves through LibTorch's TCPStore at the
/// place's port, which rank 0 opens unless torchrun did, and tell each other there where they listen; then
/// the store is left. Throws ConfigError where the place cannot be reached or somebody does not come within
/// `patience`, Interrupted where the user asked to stop meanwhile.
PeerSockets meet(const ProcessPlace& place, std::chrono::milliseconds patience);

}  // namespace gala
