#include "cli/adapt_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <numeric>

#include "cli/text.h"
#include "gala/protocol/metrics.h"

namespace gala {
namespace {

using Rows = std::vector<std::vector<std::string>>;

void print_scores(const Stream& stream, const Scores& scores) {
  const auto row = [](const std::string& name, std::int64_t images, double accuracy) {
    return std::vector<std::string>{name, with_commas(images), format_share(accuracy),
                                    format_share(1 - accuracy)};
  };
  Rows rows = {{"domain", "images", "accuracy", "error"}};
  for (std::size_t s = 0; s < stream.segments.size(); ++s) {
    rows.push_back(row(stream.segments[s].name, scores.answered(s), scores.accuracy(s)));
  }
  if (stream.segments.size() > 1) rows.push_back(row("all", scores.answered(), scores.accuracy()));
  std::cout << format_table(rows) << '\n';
}

/// How many updates a layer took, a scaled one counted by its weight.
std::string update_count(double weight) {
  constexpr double kWhole = 1000;
  return std::abs(weight) < kWhole ? fmt::format("{:.4g}", weight)
                                   : with_commas(std::llround(weight));
}

/// The layers that took most updates, then those that went farthest.
void print_layers(const Adapter& adapter) {
  const AdapterTotals& totals = adapter.totals();
  std::vector<std::size_t> order;
  for (std::size_t l = 0; l < adapter.layers().size(); ++l) {
    if (totals.path[l] > 0) order.push_back(l);
  }
  if (order.empty()) {
    std::cout << "layers     none moved\n";
    return;
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(totals.weight[a], totals.path[a]) >
           std::pair(totals.weight[b], totals.path[b]);
  });
  const std::vector<double> net = adapter.net_displacement();
  Rows rows = {{"layer", "moved", "net", "path"}};
  constexpr std::size_t kShown = 8;
  for (std::size_t i = 0; i < std::min(kShown, order.size()); ++i) {
    const std::size_t l = order[i];
    rows.push_back({adapter.layers()[l].name, update_count(totals.weight[l]),
                    fmt::format("{:.4g}", net[l]), fmt::format("{:.4g}", totals.path[l])});
  }
  std::cout << '\n' << format_table(rows);
  if (order.size() > kShown) std::cout << fmt::format("and {} more\n", order.size() - kShown);
  std::cout << "(moved: updates taken, a scaled one counted by its weight; net: distance from the "
               "source; path: distance covered)\n";
}

}  // namespace

void print_heading(const AdaptFlags& flags, const DataSource& source, const Stream& stream,
                   const Adapter& adapter) {
  const MethodOptions& options = flags.method;
  const Model& model = adapter.model();
  std::int64_t adapted = 0, all = 0;
  for (const Layer& layer : adapter.layers().layers) adapted += layer.count;
  for (const Parameter& parameter : model.parameters()) all += parameter.value.numel();
  std::cerr << fmt::format("model   {}\ndata    {}\nstream  {}\nmethod  {} | {} | {} | norm {}\n",
                           model.spec().to_string(), source.spec.to_string(),
                           stream.spec.to_string(), options.loss, options.select, options.optimizer,
                           model.norm_mode().to_string());
  std::cerr << fmt::format("layers  {} that may move, {} parameters of {}\n",
                           adapter.layers().size(), with_commas(adapted), with_commas(all));
}

std::string collapse_line(const HealthEvent& event) {
  const auto has = [&](const char* reason) {
    return std::find(event.reasons.begin(), event.reasons.end(), reason) != event.reasons.end();
  };
  std::string what = "the model is collapsing";
  if (event.not_finite > 0) {
    what = fmt::format("{} answers are not finite, the source model gives them instead",
                       with_commas(event.not_finite));
  } else if (has("lost")) {
    what = "an update was so large that nothing of the source model is left";
  } else if (has("refused")) {
    what = "every step is refused for a value that is not finite";
  }
  return fmt::format("{} (batch {}: {}; {:.1f} classes in use, displacement {:.3g}); {}", what,
                     event.batch, fmt::join(event.reasons, ", "), event.effective_classes,
                     event.displacement,
                     event.action == "warn" ? "see --guard for stopping or rolling back"
                                            : "the guard acts: " + event.action);
}

void print_result(const AdaptFlags& flags, const Stream& stream, const Adapter& adapter,
                  const Scores& scores, const RunCounts& counts) {
  const AdapterTotals& totals = adapter.totals();
  if (scores.answered() > 0) print_scores(stream, scores);
  std::cout << fmt::format(
      "answered   {} in {}, norm mode {}\n", counted(counts.answered, "image"),
      totals.batches == 1 ? "1 batch" : with_commas(totals.batches) + " batches",
      adapter.model().norm_mode().to_string());
  std::cout << fmt::format(
      "steps      {} ({} skipped, {} refused for a value that is not finite)\n",
      with_commas(totals.steps), with_commas(totals.skipped), with_commas(totals.refused));
  if (totals.from_source > 0 || totals.unanswered > 0) {
    std::cout << fmt::format(
        "not finite {} given by the source model instead, {} by nobody (which counts as wrong)\n",
        counted(totals.from_source, "answer"), with_commas(totals.unanswered));
  }
  if (counts.rotation && counts.rotation->total().choices > 0) {
    std::cout << fmt::format("repeats    {} took a layer that its window had taken before\n",
                             counts.rotation->total().repeats_text());
  }
  if (counts.unreadable > 0) {
    std::cout << fmt::format("left out   {}; the first: {}\n",
                             counted(counts.unreadable, "unreadable image"),
                             counts.first_unreadable);
  }
  if (flags.method.shadow) {
    std::cout << fmt::format("shadow     adaptation would change {} answers of {}\n",
                             with_commas(counts.differing), with_commas(counts.answered));
  }
  if (counts.collapses > 0) {
    std::cout << fmt::format(
        "guard      collapse at {}, {}{}\n", counted(counts.collapses, "judgement"),
        counted(totals.rollbacks, "rollback"), adapter.stopped() ? ", adaptation stopped" : "");
  }
  if (totals.resets > 0) {
    std::cout << fmt::format("reset      {} back to the source, as the method says\n",
                             counted(totals.resets, "time"));
  }
  if (totals.steps > 0) print_layers(adapter);
}

void print_profile(const AnswerTimes& times, std::vector<double> answers, bool on_cpu) {
  const StepTimes& steps = times.steps;
  const double predict = std::max(0.0, times.answer - steps.total());
  const double total = times.load + times.answer;
  Rows rows = {{"part", "milliseconds", "share"}};
  for (const auto& [name, time] :
       {std::pair{"load", times.load}, std::pair{"copy", steps.copy},
        std::pair{"forward", steps.forward}, std::pair{"backward", steps.backward},
        std::pair{"measure", steps.measure}, std::pair{"select", steps.select},
        std::pair{"apply", steps.apply}, std::pair{"predict", predict}}) {
    if (on_cpu && std::string_view(name) == "copy") continue;
    rows.push_back({name, fmt::format("{:.1f}", time),
                    fmt::format("{:.1f} %", total > 0 ? 100 * time / total : 0)});
  }
  std::cout << '\n' << format_table(rows);
  if (answers.empty()) return;
  // The first ones of a stream wait for what is found out once: a mean would be theirs.
  std::sort(answers.begin(), answers.end());
  std::cout << fmt::format("\na batch in the median {:.3f} milliseconds, loading left out\n",
                           quantile(answers, 0.5));
}

}  // namespace gala
