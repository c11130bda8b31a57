#pragma once
#include <cstdint>

namespace gala {

/// Baseline JPEG with colour at half resolution, there and back, of a square of RGB bytes. `input` and
/// `output` may be the same.
void jpeg_round_trip(const std::uint8_t* input, int side, int quality, std::uint8_t* output);

}  // namespace gala
