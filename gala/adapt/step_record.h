#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "gala/tensor/layer.h"

namespace gala {

/// What one step did to one layer.
struct LayerRecord {
  double cosine = 0;       ///< cos α of Eq. 5, with the unscaled update
  double update_norm = 0;  ///< |u|
  double shift_norm = 0;   ///< |TD| before the step
  double weight = 0;       ///< share of u that was applied
};

/// Where the time of a step went, in milliseconds.
struct StepTimes {
  double copy = 0;     ///< of the images to the device
  double forward = 0;  ///< with the loss; where the phases are not timed apart, the whole pass
  double backward = 0;
  double measure = 0;  ///< with the check that everything is finite
  double select = 0;
  double apply = 0;

  double total() const { return copy + forward + backward + measure + select + apply; }
  StepTimes& operator+=(const StepTimes& other);
};

/// What happened at one optimizer step.
struct StepRecord {
  std::int64_t step = 0;         ///< 1, 2, ...; refused steps count
  std::int64_t window_step = 0;  ///< place in the window, from 1
  std::int64_t batch = 0;        ///< 1, 2, ...
  double loss = 0;
  std::int64_t confident = 0;  ///< samples that took part in the pseudo-label term
  double gradient_norm = 0;
  bool refused = false;             ///< loss, gradient or update was not finite: nothing moved
  std::vector<LayerRecord> layers;  ///< empty when refused
  StepTimes times;

  /// Indices of the layers that moved.
  std::vector<std::size_t> selected() const;
  /// True when every layer was left in its place by choice.
  bool skipped() const { return !refused && selected().empty(); }
  /// Largest cosine minus second largest: how clear the choice was. 0 with fewer than two layers.
  double gap() const;
};

/// The object that `--trace` writes for a step; what only the caller knows (`correct`) is added by
/// it. `milliseconds` is left out when the output must be the same bytes every time.
nlohmann::ordered_json to_json(const StepRecord& record, const LayerPartition& layers,
                               bool with_time = true);

}  // namespace gala
