#include "cli/adapt_files.h"

#include "cli/command_files.h"

namespace gala {

void check_files(const AdaptFlags& flags, const Model& model, const DataSource& source) {
  CommandFiles files;
  files.reads("--weights", flags.model.weights);
  if (const std::string* path = model.spec().find("path")) files.reads("--model path", *path);
  files.reads("--resume", flags.resume);
  files.reads_data("--data", source.spec);
  if (!flags.method.source_data.empty()) {
    files.reads_data("--source-data", Spec::parse(flags.method.source_data));
  }
  files.writes("--trace", flags.trace);
  files.writes("--predictions", flags.predictions);
  files.writes("--save-weights", flags.save_weights);
  files.writes("--save-state", flags.save_state, /*instead_of=*/"--resume");
  files.writes("--events", flags.events);
  files.check();
}

AdaptFiles::AdaptFiles(const AdaptFlags& flags, const DataSource& source, const Stream& stream)
    : flags_(flags), with_labels_(source.classes() > 0), predictions_(source, stream) {}

void AdaptFiles::open(const nlohmann::json& positions) {
  const auto open = [&](LineFile& file, const std::string& path, const char* name) {
    if (path.empty()) return;
    positions.contains(name) ? file.reopen(path, positions[name]) : file.open(path);
  };
  open(trace_, flags_.trace, "trace");
  open(predictions_.lines(), flags_.predictions, "predictions");
  open(events_, flags_.events, "events");
  predictions_.begin();
}

void AdaptFiles::write(const Answered& answered, const LayerPartition& layers) {
  if (trace_.is_open()) {
    for (const StepRecord& step : answered.answer.steps) {
      nlohmann::ordered_json line = to_json(step, layers, /*with_time=*/false);
      if (with_labels_) {
        line["correct"] = answered.tally.right;
        line["images"] = answered.tally.counted;
      }
      if (!flags_.deterministic) line["milliseconds"] = step.times.total();
      trace_.write(line.dump());
    }
  }
  predictions_.write(answered.batch, answered.answer);
}

void AdaptFiles::write(const HealthEvent& event) {
  if (events_.is_open()) events_.write(event.to_json().dump());
}

void AdaptFiles::flush(Failures& failures) {
  for (LineFile* file : {&trace_, &predictions_.lines(), &events_}) {
    failures.attempt([&] { file->flush(); });
  }
}

nlohmann::json AdaptFiles::positions() const {
  return {{"trace", trace_.position()},
          {"predictions", predictions_.lines().position()},
          {"events", events_.position()}};
}

}  // namespace gala
