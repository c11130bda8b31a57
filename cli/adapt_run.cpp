#include "cli/adapt_run.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "cli/command.h"
#include "cli/line_file.h"
#include "cli/scores.h"
#include "cli/text.h"
#include "gala/adapt/state_file.h"
#include "gala/base/error.h"
#include "gala/base/file.h"
#include "gala/base/interrupt.h"
#include "gala/base/stopwatch.h"
#include "gala/data/loader.h"
#include "gala/model/weights.h"

namespace gala {
namespace {

/// Times of a whole run, in milliseconds.
struct RunTimes {
  StepTimes steps;
  double load = 0, answer = 0;
};

/// One call of `gala adapt`, from opened files to the last line.
class AdaptRun {
 public:
  explicit AdaptRun(const AdaptFlags& flags);
  int run();

 private:
  static std::unique_ptr<Model> open_model(const AdaptFlags& flags);
  void check_classes() const;
  void check_outputs() const;
  void resume();
  void save() const;
  void take_in(const Batch& batch, const Answer& answer);
  void write_predictions(const Batch& batch, const at::Tensor& logits,
                         const std::vector<std::int64_t>& predictions);
  void report_health(const HealthEvent& event);
  void print_heading() const;
  void print_result() const;
  void print_layers() const;
  void print_profile() const;

  const AdaptFlags& flags_;
  std::unique_ptr<Model> model_;
  DataSource source_;
  Stream stream_;
  Adapter adapter_;
  Scores scores_;
  LineFile trace_, predictions_, events_;
  std::int64_t next_position_ = 0;  ///< in the stream
  std::int64_t segment_ = 0;
  std::int64_t differing_ = 0;  ///< in shadow mode: answers that adaptation would change
  std::int64_t answered_ = 0;
  std::int64_t collapses_ = 0;
  RunTimes times_;
  std::optional<Progress> progress_;
};

std::vector<std::int64_t> to_vector(const at::Tensor& indices) {
  const at::Tensor host = indices.to(at::kCPU).contiguous();
  return {host.const_data_ptr<std::int64_t>(), host.const_data_ptr<std::int64_t>() + host.numel()};
}

DataSource open_source(const AdaptFlags& flags) { return open_data(Spec::parse(flags.data)); }

Stream open_stream(const AdaptFlags& flags, const DataSource& source) {
  const Spec spec = flags.stream.empty() ? default_stream(source) : Spec::parse(flags.stream);
  return make_stream(spec, source, static_cast<std::uint64_t>(flags.model.seed));
}

AdaptRun::AdaptRun(const AdaptFlags& flags)
    : flags_(flags),
      model_(open_model(flags)),
      source_(open_source(flags)),
      stream_(open_stream(flags, source_)),
      adapter_(*model_, flags.adapter),
      scores_(stream_.segments.size()) {
  check_classes();
  check_outputs();
  stream_.batches(flags.batch_size);  // throws now rather than after the heading
}

std::unique_ptr<Model> AdaptRun::open_model(const AdaptFlags& flags) {
  if (flags.threads > 0) at::set_num_threads(static_cast<int>(flags.threads));
  at::globalContext().setDeterministicAlgorithms(flags.deterministic, /*warn_only=*/false);
  return flags.model.open(flags.quiet);
}

void AdaptRun::check_classes() const {
  const std::int64_t classes = source_.classes();
  const bool named = !source_.class_names().empty();
  if (classes > model_->classes() || (named && classes != model_->classes())) {
    fail<ConfigError>("--data has {} classes, but the head of {} has {}", classes,
                      model_->spec().name, model_->classes());
  }
}

void AdaptRun::check_outputs() const {
  const std::pair<const char*, const std::string*> outputs[] = {
      {"--trace", &flags_.trace},
      {"--predictions", &flags_.predictions},
      {"--save-weights", &flags_.save_weights},
      {"--save-state", &flags_.save_state},
      {"--guard events", &adapter_.guard().options().events}};
  for (const auto& [flag, path] : outputs) {
    if (path->empty()) continue;
    require_writable(*path, flag);
    for (const auto& [other, other_path] : outputs) {
      if (flag != other && *path == *other_path) {
        fail<ConfigError>("{} and {} both name {}", flag, other, *path);
      }
    }
  }
}

void AdaptRun::resume() {
  State state;
  if (!flags_.resume.empty()) {
    state = read_state(flags_.resume);
    const auto& run = state.values.value("run", nlohmann::json::object());
    for (const auto& [name, value] : {std::pair{"data", source_.spec.to_string()},
                                      std::pair{"stream", stream_.spec.to_string()},
                                      std::pair{"batch size", std::to_string(flags_.batch_size)}}) {
      const std::string saved = run.value(name, "");
      if (saved != value) {
        fail<ConfigError>("--resume {}: saved with {} {}, this run has {}", flags_.resume, name, saved,
                          value);
      }
    }
    try {
      adapter_.load(state);
      scores_.load(run.at("scores"));
      next_position_ = run.at("next_position");
      segment_ = run.at("segment");
      differing_ = run.at("differing");
      answered_ = run.at("answered");
      collapses_ = run.at("collapses");
    } catch (const std::exception& problem) {
      fail<ConfigError>("--resume {}: {}", flags_.resume, problem.what());
    }
  }
  const nlohmann::json files = state.values.value("files", nlohmann::json::object());
  const auto open = [&](LineFile& file, const std::string& path, const char* name) {
    if (path.empty()) return;
    files.contains(name) ? file.reopen(path, files[name]) : file.open(path);
  };
  open(trace_, flags_.trace, "trace");
  open(predictions_, flags_.predictions, "predictions");
  open(events_, adapter_.guard().options().events, "events");
  if (predictions_.is_open() && predictions_.empty()) {
    predictions_.write(source_.classes() > 0 ? "index,prediction,confidence,label"
                                             : "index,prediction,confidence");
  }
}

void AdaptRun::save() const {
  State state = adapter_.save();
  state.values["run"] = {{"data", source_.spec.to_string()},
                         {"stream", stream_.spec.to_string()},
                         {"batch size", std::to_string(flags_.batch_size)},
                         {"scores", scores_.save()},
                         {"next_position", next_position_},
                         {"segment", segment_},
                         {"differing", differing_},
                         {"answered", answered_},
                         {"collapses", collapses_}};
  state.values["files"] = {{"trace", trace_.position()},
                           {"predictions", predictions_.position()},
                           {"events", events_.position()}};
  write_state(flags_.save_state, state);
}

void AdaptRun::write_predictions(const Batch& batch, const at::Tensor& logits,
                                 const std::vector<std::int64_t>& predictions) {
  const at::Tensor best = std::get<0>(at::softmax(logits, 1).max(1)).to(at::kCPU).contiguous();
  const float* confidence = best.const_data_ptr<float>();
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    std::string line =
        fmt::format("{},{},{:.6g}", batch.positions[i], predictions[i], confidence[i]);
    if (source_.classes() > 0) line += fmt::format(",{}", batch.labels[i]);
    predictions_.write(line);
  }
}

void AdaptRun::report_health(const HealthEvent& event) {
  if (events_.is_open()) events_.write(event.to_json().dump());
  if (!event.collapsed) return;
  // One line when it begins: a warning every ten batches would drown everything else.
  if (collapses_++ > 0 && event.action == "warn") return;
  if (progress_) progress_->clear();
  warn(fmt::format("the model is collapsing (batch {}: {}; {:.1f} classes in use, displacement "
                   "{:.2f}); {}",
                   event.batch, fmt::join(event.reasons, ", "), event.effective_classes,
                   event.displacement,
                   event.action == "warn" ? "see --guard for stopping or rolling back"
                                          : "the guard acts: " + event.action),
       flags_.quiet);
}

void AdaptRun::take_in(const Batch& batch, const Answer& answer) {
  const std::vector<std::int64_t> predictions = to_vector(answer.logits.argmax(1));
  const std::int64_t correct =
      scores_.add(static_cast<std::size_t>(batch.segment), predictions, batch.labels);
  answered_ += batch.size();
  if (answer.adapted.defined()) {
    differing_ += (answer.adapted.argmax(1) != answer.logits.argmax(1)).sum().item<std::int64_t>();
  }
  for (const StepRecord& step : answer.steps) {
    times_.steps.forward += step.times.forward;
    times_.steps.backward += step.times.backward;
    times_.steps.measure += step.times.measure;
    times_.steps.select += step.times.select;
    times_.steps.apply += step.times.apply;
    if (!trace_.is_open()) continue;
    nlohmann::ordered_json line = to_json(step, adapter_.layers(), !flags_.deterministic);
    if (source_.classes() > 0) line["correct"] = correct;
    trace_.write(line.dump());
  }
  trace_.flush();
  if (predictions_.is_open()) write_predictions(batch, answer.logits, predictions);
  if (answer.health) report_health(*answer.health);
}

int AdaptRun::run() {
  resume();
  if (!flags_.quiet) print_heading();
  LoaderOptions options;
  options.batch_size = flags_.batch_size;
  options.first_position = next_position_;
  options.skip_unreadable = flags_.skip_unreadable;
  Loader loader(stream_, model_->preprocessing(), options);
  progress_.emplace("batch", loader.batch_count(), adapter_.totals().batches, flags_.quiet);
  Stopwatch watch;
  while (std::optional<Batch> batch = loader.next()) {
    times_.load += watch.lap();
    if (stream_.reset_at_borders && batch->segment != segment_) adapter_.restart();
    segment_ = batch->segment;
    const Answer answer = adapter_.answer(batch->images);
    times_.answer += watch.lap();
    next_position_ = batch->positions.back() + 1;
    take_in(*batch, answer);
    progress_->advance(batch->number + 1, "accuracy " + format_share(scores_.accuracy()));
    const bool stop = interrupted();
    const bool due = flags_.save_every > 0 && (batch->number + 1) % flags_.save_every == 0;
    if (due || (stop && !flags_.save_state.empty())) {
      for (LineFile* file : {&trace_, &predictions_, &events_}) file->flush();
      save();
    }
    if (stop) {
      progress_->clear();
      std::cerr << fmt::format("stopped after batch {} of {}\n", batch->number + 1, loader.batch_count());
      std::cerr << (flags_.save_state.empty()
                        ? std::string("nothing was saved (give --save-state to be able to go on)\n")
                        : fmt::format("to go on, give the same flags and --resume {}\n", flags_.save_state));
      return kInterruptedExit;
    }
    watch.lap();
  }
  progress_->clear();
  for (LineFile* file : {&trace_, &predictions_, &events_}) file->flush();
  if (!flags_.save_state.empty()) save();
  if (!flags_.save_weights.empty()) save_weights(*model_, flags_.save_weights);
  if (!loader.skipped().empty()) {
    warn(fmt::format("{} images could not be read and were left out; the first: {}",
                     loader.skipped().size(), loader.skipped()[0]));
  }
  print_result();
  return 0;
}

void AdaptRun::print_heading() const {
  const AdapterOptions& adapter = flags_.adapter;
  std::cerr << fmt::format("model   {}\ndata    {}\nstream  {}\nmethod  {} | {} | {} | norm {}\n",
                           model_->spec().to_string(), source_.spec.to_string(),
                           stream_.spec.to_string(), adapter.loss, adapter.select, adapter.optimizer,
                           model_->norm_mode().to_string());
  std::cerr << fmt::format("layers  {} that may move, {} parameters of {}\n", adapter_.layers().size(),
                           with_commas([&] {
                             std::int64_t count = 0;
                             for (const Layer& layer : adapter_.layers().layers) count += layer.count;
                             return count;
                           }()),
                           with_commas([&] {
                             std::int64_t count = 0;
                             for (const Parameter& p : model_->parameters()) count += p.value.numel();
                             return count;
                           }()));
  if (adapter.episodic && adapter.inner_steps == 1 && Spec::parse(adapter.select).name == "gala") {
    warn("episodic with one inner step: every step opens a window, so gala moves all layers by its "
         "opening scale and never chooses");
  }
}

void AdaptRun::print_result() const {
  const AdapterTotals& totals = adapter_.totals();
  if (scores_.answered() > 0) {
    std::vector<std::vector<std::string>> rows = {{"domain", "images", "accuracy", "error"}};
    for (std::size_t s = 0; s < stream_.segments.size(); ++s) {
      rows.push_back({stream_.segments[s].name, std::to_string(scores_.answered(s)),
                      format_share(scores_.accuracy(s)), format_share(1 - scores_.accuracy(s))});
    }
    if (stream_.segments.size() > 1) {
      rows.push_back({"all", std::to_string(scores_.answered()), format_share(scores_.accuracy()),
                      format_share(1 - scores_.accuracy())});
    }
    std::cout << format_table(rows) << '\n';
  }
  std::cout << fmt::format("answered   {} images in {} batches, norm mode {}\n", with_commas(answered_),
                           totals.batches, model_->norm_mode().to_string());
  std::cout << fmt::format("steps      {} ({} skipped, {} refused for a value that is not finite)\n",
                           totals.steps, totals.skipped, totals.refused);
  if (flags_.adapter.shadow) {
    std::cout << fmt::format("shadow     adaptation would change {} answers of {}\n",
                             with_commas(differing_), with_commas(answered_));
  }
  if (collapses_ > 0) {
    std::cout << fmt::format("guard      collapse at {} judgements, {} rollbacks{}\n", collapses_,
                             totals.rollbacks, adapter_.stopped() ? ", adaptation stopped" : "");
  }
  print_layers();
  if (flags_.profile) print_profile();
}

void AdaptRun::print_layers() const {
  const AdapterTotals& totals = adapter_.totals();
  if (totals.steps == 0) return;
  std::vector<std::size_t> order(adapter_.layers().size());
  for (std::size_t l = 0; l < order.size(); ++l) order[l] = l;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return totals.chosen[a] > totals.chosen[b];
  });
  const std::vector<double> net = adapter_.net_displacement();
  std::vector<std::vector<std::string>> rows = {{"layer", "moved", "net", "path"}};
  constexpr std::size_t kShown = 8;
  for (std::size_t i = 0; i < std::min(kShown, order.size()); ++i) {
    const std::size_t l = order[i];
    rows.push_back({adapter_.layers()[l].name, std::to_string(totals.chosen[l]),
                    fmt::format("{:.4f}", net[l]), fmt::format("{:.4f}", totals.path[l])});
  }
  std::cout << '\n' << format_table(rows);
  if (order.size() > kShown) std::cout << fmt::format("and {} more layers\n", order.size() - kShown);
}

void AdaptRun::print_profile() const {
  const StepTimes& steps = times_.steps;
  const double predict = std::max(0.0, times_.answer - steps.total());
  const double total = times_.load + times_.answer;
  std::vector<std::vector<std::string>> rows = {{"part", "milliseconds", "share"}};
  for (const auto& [name, time] : {std::pair{"load", times_.load}, std::pair{"forward", steps.forward},
                                   std::pair{"backward", steps.backward},
                                   std::pair{"measure", steps.measure}, std::pair{"select", steps.select},
                                   std::pair{"apply", steps.apply}, std::pair{"predict", predict}}) {
    rows.push_back({name, fmt::format("{:.1f}", time),
                    fmt::format("{:.1f} %", total > 0 ? 100 * time / total : 0)});
  }
  std::cout << '\n' << format_table(rows);
}

}  // namespace

int run_adaptation(const AdaptFlags& flags) {
  catch_interrupts();
  return AdaptRun(flags).run();
}

}  // namespace gala
