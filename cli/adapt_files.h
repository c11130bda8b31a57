#pragma once
#include "cli/adapt_run.h"
#include "cli/failures.h"
#include "cli/prediction_file.h"
#include "gala/adapt/answer_loop.h"

namespace gala {

/// Throws ConfigError where a run would write what it reads, or could not write; leaves no trace.
void check_files(const AdaptFlags& flags, const Model& model, const DataSource& source);

/// What a run writes line by line while it goes on: `--trace`, `--predictions` and `--events`.
class AdaptFiles {
 public:
  /// Flags, source and stream must outlive it.
  AdaptFiles(const AdaptFlags& flags, const DataSource& source, const Stream& stream);

  /// Begins those that were asked for, or goes on where the run was saved that these are the positions of.
  void open(const nlohmann::json& positions);
  void write(const Answered& answered, const LayerPartition& layers);
  void write(const HealthEvent& event);
  /// Once a batch: a program that is killed has written what it answered.
  void flush(Failures& failures);
  /// For a saved state.
  nlohmann::json positions() const;

 private:
  const AdaptFlags& flags_;
  bool with_labels_;
  LineFile trace_, events_;
  PredictionFile predictions_;
};

}  // namespace gala
