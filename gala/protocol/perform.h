#pragma once
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "gala/protocol/provenance.h"
#include "gala/protocol/record.h"
#include "gala/protocol/resolve.h"

namespace gala {

/// What the source models score before anything moves. Kept, because many runs begin with the same
/// model. Safe for several threads.
class SourceCache {
 public:
  /// The scores under this name; `make` is called when there are none yet.
  std::vector<Score> get(const std::string& name, const std::function<std::vector<Score>()>& make);

 private:
  std::mutex mutex_;
  std::map<std::string, std::vector<Score>> scores_;
};

/// A record, and what came with it.
struct Performed {
  Record record;
  std::string trace;            ///< the bytes of the trace file, if one was asked for
  std::string capture_problem;  ///< why steps were not captured as a graph
};

/// Makes one run, from reading the weights to its record. `progress` is told of every batch answered.
/// Throws Interrupted between two batches after the user asked to stop; then nothing is left of it.
Performed perform(const ReadyRun& run, const Machine& machine, SourceCache& cache,
                  const std::function<void()>& progress);

}  // namespace gala
