#pragma once
#include <string>
#include <vector>

#include "gala/model/model.h"
#include "gala/model/weights.h"

namespace gala {

/// A place for values in a network: a parameter or a buffer.
struct WeightSlot {
  const std::string& name;
  const at::Tensor& value;
};

std::vector<WeightSlot> weight_slots(const Model& model);

/// Takes the one prefix off the file's names behind which they are those of the network, and returns
/// it. Changes nothing where a name fits as it stands, or no prefix or several would do.
std::string take_off_prefix(WeightFile& file, const Model& model);

/// The file's tensor for each slot, in their order, with every name and shape checked; nothing for
/// the head's when it `keeps_head`. Throws FormatError, with the likely reason where one is seen.
std::vector<at::Tensor> match_weights(const Model& model, const WeightFile& file,
                                      const std::string& path, bool keeps_head);

}  // namespace gala
