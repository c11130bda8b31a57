#pragma once
#include "gala/method/method_options.h"
#include "gala/model/model.h"
#include "gala/protocol/plan.h"
#include "gala/protocol/protocol.h"

namespace gala {

/// How a run adapts, with every default decided.
struct Method {
  MethodOptions options;
  bool idle = false;  ///< nothing ever moves
};

/// Decides what the plan leaves open and checks that everything fits the network, which is not
/// changed. Parts come out as specs with every option written out; of a run in which nothing moves,
/// what does not matter takes its default, so that equal runs are equal. Throws ConfigError.
Method decide_method(const RunRequest& request, const RunDefaults& defaults, Model& network);

}  // namespace gala
