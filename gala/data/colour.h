#pragma once
#include <cstdint>
#include <span>

namespace gala {

// The colour changes of torchvision's ColorJitter with PIL's rounding. A picture is three planes of
// bytes, one behind the other: red, green, blue.

void adjust_brightness(std::span<std::uint8_t> planes, double factor);
void adjust_contrast(std::span<std::uint8_t> planes, double factor);
void adjust_saturation(std::span<std::uint8_t> planes, double factor);
/// `turn` is in full turns of the colour circle, -0.5 .. 0.5.
void adjust_hue(std::span<std::uint8_t> planes, double turn);
/// Every channel becomes the luminance.
void make_grey(std::span<std::uint8_t> planes);

}  // namespace gala
