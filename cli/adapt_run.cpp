#include "cli/adapt_run.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <iterator>

#include "cli/adapt_files.h"
#include "cli/adapt_report.h"
#include "cli/adapted_weights.h"
#include "cli/command.h"
#include "cli/scores.h"
#include "cli/text.h"
#include "gala/adapt/answer_loop.h"
#include "gala/adapt/source_images.h"
#include "gala/adapt/state_file.h"
#include "gala/base/error.h"
#include "gala/base/interrupt.h"
#include "gala/base/words.h"
#include "gala/data/class_check.h"
#include "gala/data/data_paths.h"
#include "gala/data/loader.h"
#include "gala/model/classes.h"

namespace gala {
namespace {

/// One call of `gala adapt`, from opened files to the last line.
class AdaptRun {
 public:
  explicit AdaptRun(const AdaptFlags& flags);
  int run();

 private:
  static std::unique_ptr<Model> open_model(const AdaptFlags& flags,
                                           std::vector<std::string>& warnings);
  void resume();
  void take_up(const State& state);
  void start() const;
  std::string data_of_state() const;
  void save();
  std::optional<Batch> next_batch(Loader& loader);
  void report_values(const FloatRange& range);
  void report_stop(std::int64_t batches, bool saved);
  void finish(const Loader& loader, Failures& failures);
  void take_in(const Answered& answered);
  bool go_on(const Answered& answered, const Loader& loader, Failures& failures);
  void report_health(const HealthEvent& event);
  void report_unanswered(const Batch& batch, const Answer& answer);

  const AdaptFlags& flags_;
  std::vector<std::string> warnings_;  ///< said once everything given was found to be right
  std::unique_ptr<Model> model_;
  DataSource source_;
  Stream stream_;
  std::vector<BatchSpan> batches_;
  Adapter adapter_;
  Scores scores_;
  AdaptFiles files_;
  std::int64_t next_position_ = 0;  ///< in the stream
  std::int32_t segment_ = 0;
  RunCounts counts_;
  AnswerTimes times_;
  std::vector<double> answer_times_;  ///< of each batch, where they are asked for
  FloatRangeWatch values_;
  std::optional<Progress> progress_;
  std::int64_t answered_now_ = 0;       ///< batches since the program was started
  std::int64_t unreadable_before_ = 0;  ///< pictures left out before that
};

DataSource open_images(const AdaptFlags& flags, const Model& model) {
  return open_data(Spec::parse(flags.data), model.class_names());
}

Stream open_stream(const AdaptFlags& flags, const DataSource& source) {
  const Spec spec = flags.stream.empty() ? default_stream(source) : Spec::parse(flags.stream);
  return make_stream(spec, source, static_cast<std::uint64_t>(flags.model.seed));
}

AdaptRun::AdaptRun(const AdaptFlags& flags)
    : flags_(flags),
      model_(open_model(flags, warnings_)),
      source_(open_images(flags, *model_)),
      stream_(open_stream(flags, source_)),
      batches_(stream_.batches(flags.batch_size)),
      adapter_(*model_, flags.method,
               {.profile = flags.profile,
                .source_images =
                    open_source_images(flags.method.source_data, *model_, flags.batch_size)}),
      scores_(stream_.segments.size()),
      files_(flags, source_, stream_),
      values_(model_->preprocessing()) {
  check_classes(source_, *model_);
  for (std::string& note : source_.notes()) warnings_.push_back(std::move(note));
  for (std::string& warning : class_warnings(source_, stream_, model_->class_names())) {
    warnings_.push_back(std::move(warning));
  }
  if (Spec::parse(flags.method.select).name == "gala") {
    counts_.rotation.emplace(adapter_.layers().size());
  }
  check_files(flags, *model_, source_);
  if (flags.method.episodic && flags.method.inner_steps == 1 &&
      Spec::parse(flags.method.select).name == "gala") {
    warnings_.push_back(
        "episodic with one inner step: every step opens a window, so gala moves all layers by its "
        "opening scale and never chooses");
  }
}

std::unique_ptr<Model> AdaptRun::open_model(const AdaptFlags& flags,
                                            std::vector<std::string>& warnings) {
  if (flags.threads > 0) at::set_num_threads(static_cast<int>(flags.threads));
  set_deterministic(flags.deterministic);
  return flags.model.open(warnings, flags.batch_size);
}

void AdaptRun::resume() {
  State state;
  if (!flags_.resume.empty()) state = read_state(flags_.resume);
  try {
    if (!flags_.resume.empty()) take_up(state);
    files_.open(state.values.value("files", nlohmann::json::object()));
  } catch (const std::exception& problem) {
    if (flags_.resume.empty()) throw;
    fail<ConfigError>("--resume {}: {}", flags_.resume, first_line(in_words(problem)));
  }
}

/// As a state tells data apart: by what it is, not by how its paths are spelled.
std::string AdaptRun::data_of_state() const {
  return as_utf8(with_canonical_paths(source_.spec).to_string());
}

void AdaptRun::take_up(const State& state) {
  const nlohmann::json run = state.values.at("run");
  for (const auto& [name, value] :
       {std::pair{"data", data_of_state()}, std::pair{"stream", stream_.spec.to_string()},
        std::pair{"batch size", std::to_string(flags_.batch_size)}}) {
    const std::string saved = run.at(name);
    if (saved != value) {
      fail("the state was saved with {} {}, this run has {}", name, saved, value);
    }
  }
  const std::int64_t position = run.at("next_position");
  const bool at_border = std::any_of(batches_.begin(), batches_.end(), [&](const BatchSpan& span) {
    return position == span.begin || position == span.begin + span.size;
  });
  if (!at_border) fail("the state cannot be at image {} of {}", position, stream_.size());
  adapter_.load(state);
  scores_.load(run.at("scores"));
  next_position_ = position;
  segment_ = run.at("segment");
  counts_.differing = run.at("differing");
  counts_.answered = run.at("answered");
  counts_.collapses = run.at("collapses");
  counts_.unreadable = run.at("unreadable");
  counts_.first_unreadable = run.at("first_unreadable");
  // A state that was saved before these were counted: nothing true could be said of the whole.
  if (counts_.rotation) counts_.rotation->load(run.at("rotation"));
}

void AdaptRun::save() {
  State state = adapter_.save();
  state.values["run"] = {{"data", data_of_state()},
                         {"stream", stream_.spec.to_string()},
                         {"batch size", std::to_string(flags_.batch_size)},
                         {"scores", scores_.save()},
                         {"next_position", next_position_},
                         {"segment", segment_},
                         {"differing", counts_.differing},
                         {"answered", counts_.answered},
                         {"collapses", counts_.collapses},
                         {"unreadable", counts_.unreadable},
                         {"first_unreadable", counts_.first_unreadable}};
  if (counts_.rotation) state.values["run"]["rotation"] = counts_.rotation->save();
  state.values["files"] = files_.positions();
  write_state(flags_.save_state, state);
}

void AdaptRun::report_health(const HealthEvent& event) {
  files_.write(event);
  if (!event.collapsed) return;
  // One line when it begins, and one for each of the first rollbacks: more would drown everything
  // else.
  constexpr std::int64_t kSaid = 5;
  const std::int64_t said = event.action.starts_with("rollback") ? kSaid : 1;
  if (++counts_.collapses > said) return;
  if (progress_) progress_->clear();
  std::string line = collapse_line(event);
  if (said > 1 && counts_.collapses == said) line += " (further ones are only counted)";
  warn(line, flags_.quiet);
}

/// The first time an image has no finite answer, not even of the source model.
void AdaptRun::report_unanswered(const Batch& batch, const Answer& answer) {
  const auto count = std::ssize(answer.unanswered);
  if (count == 0 || adapter_.totals().unanswered > count) return;
  if (progress_) progress_->clear();
  warn(fmt::format("batch {}: {} of {} images have no finite answer, not even of the source model "
                   "(the first is image {}); they count as wrong. Look for values in the images "
                   "that are not finite",
                   adapter_.totals().batches, count, batch.size(),
                   batch.positions[static_cast<std::size_t>(answer.unanswered.front())]),
       flags_.quiet);
}

void AdaptRun::take_in(const Answered& answered) {
  const Batch& batch = answered.batch;
  const Answer& answer = answered.answer;
  segment_ = batch.segment;
  // Not after the last picture: that one may have been left out.
  const BatchSpan& span = batches_[static_cast<std::size_t>(batch.number)];
  next_position_ = span.begin + span.size;
  times_ += answered.times;
  if (flags_.profile) answer_times_.push_back(answered.times.answer);
  scores_.add(static_cast<std::size_t>(segment_), answered.tally);
  counts_.answered += answered.tally.images;
  if (answer.adapted.defined()) {
    counts_.differing += predicted_classes(answer.adapted)
                             .ne(predicted_classes(answer.logits))
                             .sum()
                             .item<std::int64_t>();
  }
  for (const StepRecord& step : answer.steps) {
    if (counts_.rotation) counts_.rotation->take(step);
  }
  files_.write(answered, adapter_.layers());
  report_unanswered(batch, answer);
  if (answer.health) report_health(*answer.health);
}

void AdaptRun::start() const {
  if (flags_.quiet) return;
  for (const std::string& warning : warnings_) warn(warning);
  print_heading(flags_, source_, stream_, adapter_);
  if (flags_.resume.empty()) return;
  std::cerr << (next_position_ < stream_.size()
                    ? fmt::format("resume  at image {} of {}\n", next_position_, stream_.size())
                    : "resume  nothing is left to do: the saved run had come to its end\n");
}

void AdaptRun::report_values(const FloatRange& range) {
  for (const std::string& news : values_.look(range)) {
    progress_->clear();
    warn(news, flags_.quiet);
  }
}

void AdaptRun::report_stop(std::int64_t batches, bool saved) {
  progress_->clear();
  const std::string score =
      scores_.answered() > 0 ? ", accuracy so far " + format_share(scores_.accuracy()) : "";
  const std::string way_on =
      flags_.save_state.empty() ? "nothing was saved (give --save-state to be able to go on)"
      : saved                   ? "to go on, give the same flags and --resume " + flags_.save_state
                                : "the state could not be saved";
  std::cerr << fmt::format("stopped after batch {} of {}{}; {}\n", batches, batches_.size(), score,
                           way_on);
}

/// A picture that cannot be read ends the run, but not without a state to go on from: whoever mends the
/// file goes on from there.
std::optional<Batch> AdaptRun::next_batch(Loader& loader) {
  const auto save_what_was_done = [&] {
    if (flags_.save_state.empty() || answered_now_ == 0) return;
    Failures unsaved;  // the reason why the run ends is told, not this one
    report_stop(adapter_.totals().batches, unsaved.attempt([&] { save(); }));
  };
  try {
    std::optional<Batch> batch = loader.next();
    report_values(loader.float_range());
    return batch;
  } catch (const FormatError& unreadable) {
    save_what_was_done();
    fail<ConfigError>("{} (--skip-unreadable leaves such images out)", unreadable.what());
  } catch (const std::exception&) {
    save_what_was_done();
    throw;
  }
}

/// Takes in an answer and writes what is due; false when the run is to stop here.
bool AdaptRun::go_on(const Answered& answered, const Loader& loader, Failures& failures) {
  take_in(answered);
  ++answered_now_;
  files_.flush(failures);
  const std::vector<std::string>& skipped = loader.skipped();
  counts_.unreadable = unreadable_before_ + std::ssize(skipped);
  if (counts_.first_unreadable.empty() && !skipped.empty()) counts_.first_unreadable = skipped[0];
  const std::int64_t done = answered.batch.number + 1;
  progress_->advance(done, "accuracy " + format_share(scores_.accuracy()));
  const bool last = done == std::ssize(batches_);
  const bool stopped = !last && (interrupted() || failures.any());
  const bool due = flags_.save_every > 0 && done % flags_.save_every == 0;
  const bool saving = due || (stopped && !flags_.save_state.empty());
  const bool saved = saving && failures.attempt([&] { save(); });
  if (last || (!stopped && !failures.any())) return true;
  report_stop(done, saved);
  return false;
}

int AdaptRun::run() {
  resume();
  LoaderOptions options;
  options.batch_size = flags_.batch_size;
  options.first_position = next_position_;
  options.skip_unreadable = flags_.skip_unreadable;
  options.device = model_->device();
  Loader loader(stream_, model_->preprocessing(), options);
  unreadable_before_ = counts_.unreadable;
  start();
  progress_.emplace("batch", loader.batch_count(), adapter_.totals().batches, flags_.quiet);
  Failures failures;
  const auto next = [&] { return next_batch(loader); };
  const auto take = [&](const Answered& answered) { return go_on(answered, loader, failures); };
  const Borders borders{.restart = stream_.reset_at_borders, .segment = segment_};
  if (!for_each_answer(next, adapter_, take, borders)) {
    failures.throw_if_any();
    return kInterruptedExit;
  }
  finish(loader, failures);
  return 0;
}

void AdaptRun::finish(const Loader& loader, Failures& failures) {
  progress_->clear();
  if (counts_.answered == 0) {
    fail<ConfigError>("--data {}: none of the images could be read; the first: {}",
                      source_.spec.to_string(), loader.skipped().at(0));
  }
  if (const std::string& problem = adapter_.capture_problem(); !problem.empty()) {
    warn("steps were not captured as a graph, which is slower: " + first_line(problem),
         flags_.quiet);
  }
  // What can be saved is saved, and what is known is said, before a full disk ends the run.
  if (!failures.any()) files_.flush(failures);
  if (!flags_.save_state.empty()) failures.attempt([&] { save(); });
  if (!flags_.save_weights.empty()) {
    failures.attempt([&] { save_adapted_weights(*model_, flags_.save_weights); });
  }
  print_result(flags_, stream_, adapter_, scores_, counts_);
  if (flags_.profile) {
    print_profile(times_, std::move(answer_times_), model_->device().is_cpu());
  }
  failures.throw_if_any();
}

}  // namespace

int run_adaptation(const AdaptFlags& flags) {
  catch_interrupts();
  return AdaptRun(flags).run();
}

}  // namespace gala
