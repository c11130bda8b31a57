#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace gala {

/// A small seeded generator (xoshiro256++) whose stream depends on a seed, a name and any number of
/// indices, and on nothing else: not on the machine, the thread, or who drew before. Make one where
/// it is used: `Random(seed, "corruption", {kind, severity, image})`.
class Random {
 public:
  using State = std::array<std::uint64_t, 4>;

  Random(std::uint64_t seed, std::string_view name,
         std::initializer_list<std::uint64_t> indices = {});

  std::uint64_t next();
  /// Uniform in [0, 1), 53 bits.
  double uniform();
  /// Uniform in [low, high).
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// Uniform in 0 .. bound-1, without bias. bound > 0.
  std::uint64_t below(std::uint64_t bound);
  /// Standard normal (Marsaglia's polar method; nothing is kept between calls).
  double normal();

  /// Every order is as likely as any other.
  template <class Values>
  void shuffle(Values& values) {
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
  }

  const State& state() const { return state_; }
  void set_state(const State& state) { state_ = state; }

 private:
  State state_;
};

}  // namespace gala
