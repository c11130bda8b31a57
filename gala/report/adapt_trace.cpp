#include <algorithm>
#include <cmath>
#include <fstream>

#include "gala/base/error.h"
#include "gala/base/json.h"
#include "gala/base/words.h"
#include "gala/report/traces.h"

namespace gala {
namespace {

double number_at(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>() : std::nan("");
}

/// Takes in the lines of a trace, one after the other.
class Reader {
 public:
  explicit Reader(AdaptTrace& trace) : trace_(trace), run_(trace.run) {}
  void add(const nlohmann::json& line);
  void finish();

 private:
  void add_choice(const nlohmann::json& line);
  void add_layers(const nlohmann::json& line, std::int64_t window_step);
  void add_answers(const nlohmann::json& line);
  void end_window();

  AdaptTrace& trace_;
  Record& run_;
  std::vector<std::int64_t> steps_;
  std::vector<std::vector<double>> distances_;
  std::vector<double> gaps_, times_;
  std::vector<double> path_, path_before_, shift_;  ///< of the open window, by layer
  std::optional<RotationCount> rotation_;
  std::int64_t windows_ = 0;
  std::int64_t batch_ = 0;
};

void Reader::add(const nlohmann::json& line) {
  const std::int64_t step = count_from(line.at("step")),
                     window_step = count_from(line.at("window_step"));
  ++run_.steps;
  trace_.losses.push_back(number_at(line, "loss"));
  trace_.gradient_norms.push_back(number_at(line, "gradient_norm"));
  if (const double time = number_at(line, "milliseconds"); std::isfinite(time)) {
    times_.push_back(time);
  }
  steps_.push_back(step);
  distances_.emplace_back();
  if (window_step == 1) end_window();
  add_layers(line, window_step);
  if (!rotation_ && !run_.layers.empty()) rotation_.emplace(run_.layers.size());
  if (rotation_ && window_step == 1) rotation_->open_window();
  windows_ += window_step == 1;
  add_choice(line);
  add_answers(line);
}

void Reader::add_layers(const nlohmann::json& line, std::int64_t window_step) {
  const auto& layers = line.at("layers");
  if (run_.layers.empty()) {
    for (const auto& layer : layers) run_.layers.push_back({.name = layer.at("name"), .block = -1});
    path_.assign(run_.layers.size(), 0);
    path_before_ = shift_ = path_;
  }
  if (layers.empty()) return;  // refused
  if (layers.size() != run_.layers.size())
    fail("has {} layers, the lines before have {}", layers.size(), run_.layers.size());
  path_before_ = path_;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const double cosine = number_at(layers[l], "cosine"), weight = number_at(layers[l], "weight");
    distances_.back().push_back(1 - cosine);
    shift_[l] = number_at(layers[l], "shift_norm");
    path_[l] += weight * number_at(layers[l], "update_norm");
    run_.layers[l].weight += weight;
    run_.layers[l].chosen += weight == 1;
  }
  if (window_step > 1) gaps_.push_back(number_at(line, "gap"));
}

void Reader::add_choice(const nlohmann::json& line) {
  std::int64_t choice = Record::kNone;
  const auto& selected = line.at("selected");
  if (line.value("refused", false)) {
    choice = Record::kRefused;
    ++run_.refused;
  } else if (selected.empty()) {
    ++run_.skipped;
  } else if (selected.size() > 1) {
    choice = Record::kSeveral;
  } else {
    const auto found = std::find_if(
        run_.layers.begin(), run_.layers.end(),
        [&](const LayerUse& layer) { return layer.name == selected[0].get<std::string>(); });
    if (found == run_.layers.end()) fail("selects a layer that it does not list");
    choice = found - run_.layers.begin();
    rotation_->choose(choice);
  }
  if (!run_.choices.empty() && run_.choices.back().first == choice)
    ++run_.choices.back().second;
  else
    run_.choices.emplace_back(choice, 1);
}

void Reader::add_answers(const nlohmann::json& line) {
  // Several inner steps share a batch and its answers.
  const std::int64_t batch = count_from(line.at("batch"));
  if (batch == batch_ || !line.contains("correct") || !line.contains("images")) return;
  batch_ = batch;
  run_.over_time.images.push_back(count_from(line.at("images")));
  run_.over_time.correct.push_back(count_from(line.at("correct")));
}

void Reader::end_window() {
  for (std::size_t l = 0; l < path_.size(); ++l) {
    run_.layers[l].path += path_before_[l];
    run_.layers[l].net += shift_[l];
  }
  std::fill(path_.begin(), path_.end(), 0.0);
  path_before_ = shift_ = path_;
}

void Reader::finish() {
  end_window();
  run_.gap = GapSummary::of(gaps_);
  // A selector without windows has nothing to go round in; a trace does not tell its selector.
  if (windows_ > 1 && rotation_ && rotation_->total().choices > 0)
    run_.rotation = rotation_->total();
  trace_.cosines = summarise_cosines(steps_, distances_);
  std::sort(times_.begin(), times_.end());
  if (!times_.empty()) {
    run_.cost.step_median = times_[times_.size() / 2];
    for (const double time : times_)
      run_.cost.step_mean += time / static_cast<double>(times_.size());
  }
  if (!run_.over_time.images.empty()) {
    Score all{"all", 0, 0};
    for (const std::int64_t images : run_.over_time.images) all.images += images;
    for (const std::int64_t correct : run_.over_time.correct) all.correct += correct;
    run_.domains = {all};
    run_.over_time.borders = {{0, "all"}};
  }
}

}  // namespace

AdaptTrace read_adapt_trace(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw FormatError(path.string(), "cannot be read");
  AdaptTrace trace;
  trace.run.key = path.stem().string();
  trace.run.labels.row = path.filename().string();
  Reader reader(trace);
  std::string text;
  std::int64_t number = 0;
  while (std::getline(file, text)) {
    ++number;
    if (text.empty()) continue;
    try {
      reader.add(parse_json(text));
    } catch (const std::exception& error) {
      // A last line that was cut off is passed over, as long as there are others.
      if (file.peek() == std::ifstream::traits_type::eof() && number > 1) break;
      throw FormatError(path.string(), fmt::format("line {} is not a step of a trace: {}", number,
                                                   in_words(error)));
    }
  }
  if (trace.run.steps == 0) throw FormatError(path.string(), "holds no step of a trace");
  reader.finish();
  return trace;
}

}  // namespace gala
