#include "gala/data/corruption/edges.h"

#include <cmath>
#include <cstdlib>
#include <vector>

namespace gala {
namespace {

struct Gradient {
  int dx, dy, strength;
};

std::array<Gradient, kPixels> sobel(const Levels& image) {
  auto at = [&](int y, int x) -> int {
    return image[border_index<Border::kReplicate>(y) * kSide + border_index<Border::kReplicate>(x)];
  };
  std::array<Gradient, kPixels> gradients;
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      const int dx = at(y - 1, x + 1) + 2 * at(y, x + 1) + at(y + 1, x + 1) - at(y - 1, x - 1) -
                     2 * at(y, x - 1) - at(y + 1, x - 1);
      const int dy = at(y + 1, x - 1) + 2 * at(y + 1, x) + at(y + 1, x + 1) - at(y - 1, x - 1) -
                     2 * at(y - 1, x) - at(y - 1, x + 1);
      gradients[y * kSide + x] = {dx, dy, std::abs(dx) + std::abs(dy)};
    }
  }
  return gradients;
}

/// Whether the gradient at (y, x) is the largest across its edge. Of two equal neighbours along an
/// axis the later one is dropped; along a diagonal both are.
bool is_ridge(const std::array<Gradient, kPixels>& gradients, int y, int x) {
  auto strength = [&](int row, int column) {
    const bool inside = row >= 0 && row < kSide && column >= 0 && column < kSide;
    return inside ? gradients[row * kSide + column].strength : 0;
  };
  const auto [dx, dy, own] = gradients[y * kSide + x];
  const double steepness = std::abs(dy), run = std::abs(dx);
  constexpr double kTangent22 = 0.41421356237309503, kTangent67 = 2.4142135623730951;
  if (steepness < kTangent22 * run) {
    return own > strength(y, x - 1) && own >= strength(y, x + 1);
  }
  if (steepness > kTangent67 * run) {
    return own > strength(y - 1, x) && own >= strength(y + 1, x);
  }
  const int side = (dx < 0) != (dy < 0) ? -1 : 1;
  return own > strength(y - 1, x - side) && own > strength(y + 1, x + side);
}

}  // namespace

Levels find_edges(const Levels& image, int low, int high) {
  const auto gradients = sobel(image);
  Levels weak{}, edges{};
  std::vector<int> found;
  for (int i = 0; i < kPixels; ++i) {
    if (gradients[i].strength <= low || !is_ridge(gradients, i / kSide, i % kSide)) continue;
    weak[i] = 1;
    if (gradients[i].strength > high) edges[i] = 1, found.push_back(i);
  }
  while (!found.empty()) {
    const int y = found.back() / kSide, x = found.back() % kSide;
    found.pop_back();
    for (int row = std::max(y - 1, 0); row <= std::min(y + 1, kSide - 1); ++row) {
      for (int column = std::max(x - 1, 0); column <= std::min(x + 1, kSide - 1); ++column) {
        const int i = row * kSide + column;
        if (weak[i] && !edges[i]) edges[i] = 1, found.push_back(i);
      }
    }
  }
  return edges;
}

void distance_to_edges(const Levels& edges, Plane& distance) {
  struct Step {
    int dy, dx;
    float length;
  };
  // Lengths in whole 65536ths: five diagonals and two neighbours stay just below 9, which the cut
  // to levels after the blur makes visible.
  constexpr float kDiagonal = 91750.0f / 65536, kKnight = 143976.0f / 65536;
  constexpr Step kSteps[] = {{-1, 0, 1},         {0, -1, 1},        {-1, -1, kDiagonal},
                             {-1, 1, kDiagonal}, {-2, -1, kKnight}, {-2, 1, kKnight},
                             {-1, -2, kKnight},  {-1, 2, kKnight}};
  for (int i = 0; i < kPixels; ++i) distance[i] = edges[i] ? 0.0f : 8192.0f;
  // One pass down with the steps as they are, one pass up with them reversed.
  for (int direction : {1, -1}) {
    for (int n = 0; n < kPixels; ++n) {
      const int i = direction > 0 ? n : kPixels - 1 - n, y = i / kSide, x = i % kSide;
      for (const auto& step : kSteps) {
        const int row = y + direction * step.dy, column = x + direction * step.dx;
        if (row < 0 || row >= kSide || column < 0 || column >= kSide) continue;
        distance[i] = std::min(distance[i], distance[row * kSide + column] + step.length);
      }
    }
  }
}

Plane box_blur(const Plane& image) {
  Plane rows, result;
  for (int y = 0; y < kSide; ++y) {
    const float* in = &image[y * kSide];
    for (int x = 0; x < kSide; ++x) {
      rows[y * kSide + x] = in[border_index<Border::kReflect101>(x - 1)] + in[x] +
                            in[border_index<Border::kReflect101>(x + 1)];
    }
  }
  for (int y = 0; y < kSide; ++y) {
    const float* above = &rows[border_index<Border::kReflect101>(y - 1) * kSide];
    const float* below = &rows[border_index<Border::kReflect101>(y + 1) * kSide];
    for (int x = 0; x < kSide; ++x) {
      result[y * kSide + x] = (above[x] + rows[y * kSide + x] + below[x]) / 9;
    }
  }
  return result;
}

Plane emboss(const Levels& image) {
  constexpr int kKernel[3][3] = {{-2, -1, 0}, {-1, 1, 1}, {0, 1, 2}};
  Plane result;
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      int sum = 0;
      for (int v = 0; v < 3; ++v) {
        const int row = border_index<Border::kReflect101>(y + v - 1) * kSide;
        for (int u = 0; u < 3; ++u) {
          sum += kKernel[v][u] * image[row + border_index<Border::kReflect101>(x + u - 1)];
        }
      }
      result[y * kSide + x] = static_cast<float>(std::clamp(sum, 0, 255));
    }
  }
  return result;
}

Levels equalise(const Levels& image) {
  std::array<int, 256> counts{};
  for (std::uint8_t level : image) ++counts[level];
  const int first = static_cast<int>(
      std::find_if(counts.begin(), counts.end(), [](int count) { return count > 0; }) -
      counts.begin());
  if (counts[first] == kPixels) return image;
  const float scale = 255.0f / static_cast<float>(kPixels - counts[first]);
  std::array<std::uint8_t, 256> table{};
  int sum = 0;
  for (int level = first + 1; level < 256; ++level) {
    sum += counts[level];
    table[level] = static_cast<std::uint8_t>(std::nearbyint(static_cast<float>(sum) * scale));
  }
  Levels result;
  for (int i = 0; i < kPixels; ++i) result[i] = table[image[i]];
  return result;
}

Levels cut_to_levels(const Plane& image) {
  Levels levels;
  for (int i = 0; i < kPixels; ++i) levels[i] = static_cast<std::uint8_t>(image[i]);
  return levels;
}

Levels round_to_levels(const Plane& image) {
  Levels levels;
  for (int i = 0; i < kPixels; ++i) levels[i] = to_level(image[i] + 0.5f);
  return levels;
}

}  // namespace gala
