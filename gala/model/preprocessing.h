#pragma once
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace gala {

/// How an 8-bit RGB picture becomes a network's input. It belongs to the weights and travels in the
/// metadata of their file. value = (pixel / 255 - mean) / std, channel by channel.
struct Preprocessing {
  std::array<double, 3> mean{0, 0, 0};
  std::array<double, 3> std{1, 1, 1};
  std::int64_t size = 224;  ///< height and width the network expects
  std::string interpolation =
      "bilinear";                ///< antialiased, as PIL does; "nearest", "bilinear" or "bicubic"
  std::string channels = "rgb";  ///< "rgb" or "bgr"; mean and std are in this order

  static Preprocessing imagenet();
  /// Throws ConfigError when a field is missing, of the wrong type or out of range.
  static Preprocessing from_json(const nlohmann::json& json);
  nlohmann::json to_json() const;
  bool operator==(const Preprocessing&) const = default;
};

}  // namespace gala
