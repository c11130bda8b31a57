#pragma once
#include <string>

#include "gala/adapt/adapter.h"
#include "gala/protocol/plan.h"
#include "gala/protocol/protocol.h"

namespace gala {

/// How a run adapts, with every default decided.
struct Method {
  AdapterOptions options;
  std::string norm;
  std::int64_t batch_size = 0;
  bool idle = false;  ///< nothing ever moves
};

/// Decides what the plan leaves open and checks that everything fits the network, which is not
/// changed. Parts come out as specs with every option written out; of a run in which nothing moves,
/// what does not matter takes its default, so that equal runs are equal. Throws ConfigError.
Method decide_method(const RunRequest& request, const RunDefaults& defaults, Model& network);

/// The spec with every option of its kind written out and numbers in one spelling. Throws ConfigError
/// for an unknown name, option or value.
Spec written_out(const Spec& spec, const std::vector<MethodInfo>& known, std::string_view kind);

}  // namespace gala
