#pragma once
#include <cstdint>

#include "gala/data/corruption/pixels.h"

namespace gala {

// Small image operations that water spatter needs, on square images of one channel.

using Levels = Raster<std::uint8_t>;

/// Canny's edges: 3x3 Sobel gradients with replicated borders, |dx| + |dy| as strength, thinned
/// across the edge, kept above `low` where connected to a place above `high`. 1 on edges, else 0.
Levels find_edges(const Levels& image, int low, int high);

/// Distance in pixels to the nearest place where `edges` is not 0, by steps of 1, 1.4 and 2.1969
/// for neighbours, diagonals and knight's moves. Large everywhere when there is no edge.
void distance_to_edges(const Levels& edges, Plane& distance);

/// Mean of the 3x3 neighbourhood, reflect-101 borders.
Plane box_blur(const Plane& image);
/// Light from the upper left, reflect-101 borders, cut to 0 .. 255.
Plane emboss(const Levels& image);
/// Levels spread so that their cumulative histogram becomes a line.
Levels equalise(const Levels& image);

/// For values in 0 .. 255.
Levels cut_to_levels(const Plane& image);
Levels round_to_levels(const Plane& image);

}  // namespace gala
