#include "gala/base/random.h"

#include <bit>
#include <cmath>

namespace gala {
namespace {

/// One step of splitmix64: spreads a counter over all 64 bits.
std::uint64_t mix(std::uint64_t& counter) {
  std::uint64_t z = (counter += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3ULL;
  return hash;
}

}  // namespace

Random::Random(std::uint64_t seed, std::string_view name,
               std::initializer_list<std::uint64_t> indices) {
  std::uint64_t counter = seed;
  counter = mix(counter) ^ fnv1a(name);
  for (std::uint64_t index : indices) counter = mix(counter) ^ index;
  for (auto& word : state_) word = mix(counter);
}

std::uint64_t Random::next() {
  const std::uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
  const std::uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double Random::uniform() {
  return static_cast<double>(next() >> 11) * 0x1.0p-53;
}

std::uint64_t Random::below(std::uint64_t bound) {
  // Draws above the largest multiple of `bound` are thrown away.
  const std::uint64_t rest = (0 - bound) % bound;
  std::uint64_t draw = next();
  while (draw < rest) draw = next();
  return draw % bound;
}

double Random::normal() {
  while (true) {
    const double x = uniform(-1, 1), y = uniform(-1, 1);
    const double square = x * x + y * y;
    if (square > 0 && square < 1) return x * std::sqrt(-2 * std::log(square) / square);
  }
}

}  // namespace gala
