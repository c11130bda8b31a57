#pragma once
#include <array>
#include <string_view>

#include "gala/model/model.h"

namespace gala {

/// How maps and kernels lie in memory. It moves results by rounding only.
enum class Layout {
  kAuto,          ///< channels-last on a GPU, else contiguous
  kContiguous,    ///< channel after channel
  kChannelsLast,  ///< the channels of a place side by side
  kFastest        ///< whichever of the two is quicker here, by trial
};
constexpr std::array<std::string_view, 4> enum_names(Layout) {
  return {"auto", "contiguous", "channels_last", "fastest"};
}

/// Gives a network its layout, before an adapter or trainer takes its parameters. For `fastest`,
/// passes forward and backward over a made-up batch of the shape are timed; parameters, statistics
/// and norm mode stay as they are.
void set_layout(Model& model, Layout layout, at::IntArrayRef batch_shape);

}  // namespace gala
