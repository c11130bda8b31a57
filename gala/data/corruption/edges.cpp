#include "gala/data/corruption/edges.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <vector>

namespace gala {
namespace {

struct Gradient {
  int dx, dy, strength;
};

Raster<Gradient> sobel(const Levels& image) {
  const int side = image.side();
  auto at = [&](int y, int x) -> int {
    return image[border_index<Border::kReplicate>(y, side) * side +
                 border_index<Border::kReplicate>(x, side)];
  };
  Raster<Gradient> gradients(side);
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const int dx = at(y - 1, x + 1) + 2 * at(y, x + 1) + at(y + 1, x + 1) - at(y - 1, x - 1) -
                     2 * at(y, x - 1) - at(y + 1, x - 1);
      const int dy = at(y + 1, x - 1) + 2 * at(y + 1, x) + at(y + 1, x + 1) - at(y - 1, x - 1) -
                     2 * at(y - 1, x) - at(y - 1, x + 1);
      gradients[y * side + x] = {dx, dy, std::abs(dx) + std::abs(dy)};
    }
  }
  return gradients;
}

/// Whether the gradient at (y, x) is the largest across its edge. Of two equal neighbours along an
/// axis the later one is dropped; along a diagonal both are.
bool is_ridge(const Raster<Gradient>& gradients, int y, int x) {
  const int side = gradients.side();
  auto strength = [&](int row, int column) {
    const bool inside = row >= 0 && row < side && column >= 0 && column < side;
    return inside ? gradients[row * side + column].strength : 0;
  };
  const auto [dx, dy, own] = gradients[y * side + x];
  const double steepness = std::abs(dy), run = std::abs(dx);
  constexpr double kTangent22 = 0.41421356237309503, kTangent67 = 2.4142135623730951;
  if (steepness < kTangent22 * run) {
    return own > strength(y, x - 1) && own >= strength(y, x + 1);
  }
  if (steepness > kTangent67 * run) {
    return own > strength(y - 1, x) && own >= strength(y + 1, x);
  }
  const int slant = (dx < 0) != (dy < 0) ? -1 : 1;
  return own > strength(y - 1, x - slant) && own > strength(y + 1, x + slant);
}

}  // namespace

Levels find_edges(const Levels& image, int low, int high) {
  const auto gradients = sobel(image);
  const int side = image.side();
  Levels weak(side), edges(side);
  std::vector<int> found;
  for (int i = 0; i < image.size(); ++i) {
    if (gradients[i].strength <= low || !is_ridge(gradients, i / side, i % side)) continue;
    weak[i] = 1;
    if (gradients[i].strength > high) edges[i] = 1, found.push_back(i);
  }
  while (!found.empty()) {
    const int y = found.back() / side, x = found.back() % side;
    found.pop_back();
    for (int row = std::max(y - 1, 0); row <= std::min(y + 1, side - 1); ++row) {
      for (int column = std::max(x - 1, 0); column <= std::min(x + 1, side - 1); ++column) {
        const int i = row * side + column;
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
  const int side = edges.side(), pixels = edges.size();
  for (int i = 0; i < pixels; ++i) distance[i] = edges[i] ? 0.0f : 8192.0f;
  // One pass down with the steps as they are, one pass up with them reversed.
  for (int direction : {1, -1}) {
    for (int n = 0; n < pixels; ++n) {
      const int i = direction > 0 ? n : pixels - 1 - n, y = i / side, x = i % side;
      for (const auto& step : kSteps) {
        const int row = y + direction * step.dy, column = x + direction * step.dx;
        if (row < 0 || row >= side || column < 0 || column >= side) continue;
        distance[i] = std::min(distance[i], distance[row * side + column] + step.length);
      }
    }
  }
}

Plane box_blur(const Plane& image) {
  const int side = image.side();
  Plane rows(side), result(side);
  for (int y = 0; y < side; ++y) {
    const float* in = &image[y * side];
    for (int x = 0; x < side; ++x) {
      rows[y * side + x] = in[border_index<Border::kReflect101>(x - 1, side)] + in[x] +
                           in[border_index<Border::kReflect101>(x + 1, side)];
    }
  }
  for (int y = 0; y < side; ++y) {
    const float* above = &rows[border_index<Border::kReflect101>(y - 1, side) * side];
    const float* below = &rows[border_index<Border::kReflect101>(y + 1, side) * side];
    for (int x = 0; x < side; ++x) {
      result[y * side + x] = (above[x] + rows[y * side + x] + below[x]) / 9;
    }
  }
  return result;
}

Plane emboss(const Levels& image) {
  constexpr int kKernel[3][3] = {{-2, -1, 0}, {-1, 1, 1}, {0, 1, 2}};
  const int side = image.side();
  Plane result(side);
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      int sum = 0;
      for (int v = 0; v < 3; ++v) {
        const int row = border_index<Border::kReflect101>(y + v - 1, side) * side;
        for (int u = 0; u < 3; ++u) {
          sum += kKernel[v][u] * image[row + border_index<Border::kReflect101>(x + u - 1, side)];
        }
      }
      result[y * side + x] = static_cast<float>(std::clamp(sum, 0, 255));
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
  const int pixels = image.size();
  if (counts[first] == pixels) return image;
  const float scale = 255.0f / static_cast<float>(pixels - counts[first]);
  std::array<std::uint8_t, 256> table{};
  int sum = 0;
  for (int level = first + 1; level < 256; ++level) {
    sum += counts[level];
    table[level] = static_cast<std::uint8_t>(std::nearbyint(static_cast<float>(sum) * scale));
  }
  Levels result(image.side());
  for (int i = 0; i < pixels; ++i) result[i] = table[image[i]];
  return result;
}

Levels cut_to_levels(const Plane& image) {
  Levels levels(image.side());
  for (int i = 0; i < image.size(); ++i) levels[i] = static_cast<std::uint8_t>(image[i]);
  return levels;
}

Levels round_to_levels(const Plane& image) {
  Levels levels(image.side());
  for (int i = 0; i < image.size(); ++i) levels[i] = to_level(image[i] + 0.5f);
  return levels;
}

}  // namespace gala
