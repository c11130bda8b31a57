#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gala/protocol/run_spec.h"
#include "gala/step/rotation.h"

namespace gala {

/// The version of what is written. docs/records.md describes it.
inline constexpr std::int64_t kRecordSchema = 1;

/// Right answers on a set of labelled images.
struct Score {
  std::string name;
  std::int64_t images = 0;
  std::int64_t correct = 0;

  /// 0 to 1; NaN without images.
  double accuracy() const {
    return images > 0 ? static_cast<double>(correct) / static_cast<double>(images)
                      : std::numeric_limits<double>::quiet_NaN();
  }
  bool operator==(const Score&) const = default;
};

/// Where a run stands in tables and figures. Empty where it does not apply.
struct Labels {
  std::string plan;                          ///< "table2"
  std::string group;                         ///< a part of the table: "Window size"
  std::string row;                           ///< the method or condition: "GALA"
  std::string benchmark;                     ///< "continual", "domainbed", "tiny_domainbed"
  std::string dataset;                       ///< "CIFAR-10-C", "PACS"
  std::string backbone;                      ///< "ResNet-18"
  std::string environment;                   ///< the target: "sketch"
  std::int64_t trial = 0;                    ///< which of several repetitions
  std::string loss;                          ///< "pseudo_label"; empty where nothing adapts
  std::map<std::string, std::string> hyper;  ///< the hyper-parameters a selection rule chooses

  nlohmann::ordered_json to_json() const;
  static Labels from_json(const nlohmann::json& json);
  auto operator<=>(const Labels&) const = default;
};

/// What happened to one layer.
struct LayerUse {
  std::string name;
  int block = 0;  ///< 1, 2, ...; 0 for the head
  std::int64_t parameters = 0;
  std::int64_t chosen = 0;  ///< steps at which it moved by its whole update
  double weight = 0;        ///< sum of the weights it was given over all steps
  double path = 0;          ///< Σ |applied update|
  double net = 0;           ///< |θ - θ_source| at the end
};

/// The gap between the two best cosines over the steps that do not open a window.
struct GapSummary {
  /// Shares of the steps at which the quantiles lie.
  static constexpr double kQuantiles[] = {0, 0.05, 0.25, 0.5, 0.75, 0.95, 1};
  std::int64_t steps = 0;
  std::int64_t zero = 0;              ///< exact ties
  std::vector<double> quantiles;      ///< at kQuantiles; empty when there are no steps
  std::vector<std::int64_t> decades;  ///< [i]: gaps in 10^(i-17) .. 10^(i-16); smaller ones in [0]

  /// Sums up the gaps of single steps.
  static GapSummary of(std::vector<double> gaps);
};

/// What the guard saw.
struct GuardSummary {
  std::int64_t judgements = 0;
  std::int64_t collapses = 0;
  std::int64_t rollbacks = 0;
  bool stopped = false;
  std::vector<nlohmann::json>
      events;  ///< where it first saw a collapse, and what it did; at most 20
};

/// What the run cost. Times in milliseconds.
struct Cost {
  double total = 0;       ///< the whole run, evaluations included
  double load = 0;        ///< waiting for images
  double batch_mean = 0;  ///< to answer a batch
  double step_mean = 0;   ///< of an optimizer step
  double step_median = 0;
  double step_95 = 0;  ///< 95 of 100 steps take less
  std::map<std::string, double>
      parts;                     ///< mean of a step: forward, backward, measure, select, apply
  std::int64_t peak_memory = 0;  ///< bytes; 0 where it is not known
  std::string memory_of;         ///< "process" or "device": other runs may share it
};

/// Answers in the order of the stream.
struct OverTime {
  std::vector<std::int64_t> images;                           ///< of each batch
  std::vector<std::int64_t> correct;                          ///< of each batch
  std::vector<std::pair<std::int64_t, std::string>> borders;  ///< first batch and name of a segment
};

/// What the moved parameters do to the source domain.
struct SourceScores {
  bool augmented = false;             ///< images varied as in training (T3A), or as they are
  std::vector<Score> before;          ///< the source model with its own statistics
  std::vector<Score> before_in_norm;  ///< the source model in the run's norm mode, where it differs
  std::vector<Score> after;           ///< after adaptation, in the run's norm mode
};

/// One adaptation run: what was run, where it belongs, what came out.
struct Record {
  /// Codes in `choices` beside the number of a layer.
  enum Choice : std::int64_t { kNone = -1, kRefused = -2, kSeveral = -3 };

  std::string key;
  RunSpec spec;
  std::string data_hash;
  Labels labels;
  std::vector<Labels> places;  ///< further places it was given later
  // Where these stand in the store: the later line has a place that two claim.
  std::int64_t line = 0;
  std::vector<std::int64_t> place_lines = {};  ///< one for each of `places`

  std::vector<Score> domains;          ///< the answers of the run, domain by domain
  std::optional<Score> held_out;       ///< held-out part of the target, after adaptation
  std::optional<SourceScores> source;  ///< hold-outs of the source
  std::vector<Score> validation;       ///< hold-outs of the source, each adapted to from anew

  std::int64_t steps = 0;
  std::int64_t refused = 0;  ///< loss, gradient or update not finite: nothing moved
  std::int64_t skipped = 0;  ///< no layer passed
  std::int64_t from_source =
      0;  ///< answers the source model gave, the adapted one's not being finite
  std::int64_t unanswered = 0;  ///< images without a finite answer: they count as wrong
  std::vector<LayerUse> layers;
  std::vector<std::pair<std::int64_t, std::int64_t>> choices;  ///< (layer or code, steps in a row)
  std::optional<Rotation> rotation;                            ///< as counted; see `rotation_of`
  GapSummary gap;
  OverTime over_time;
  GuardSummary guard;
  Cost cost;
  nlohmann::json provenance = nlohmann::json::object();
  std::string trace;  ///< file beside the store; empty when there is none

  /// Mean over domains of the accuracy while adapting; NaN without labelled images.
  double accuracy() const;
  double error() const { return 1 - accuracy(); }
  /// Accuracy on the target's held-out part after adaptation.
  std::optional<double> generalisation() const;
  /// Mean accuracy on the source's hold-outs of the source model, with its own statistics, minus that
  /// after adaptation in the run's norm mode: what a user loses, statistics and parameters together.
  std::optional<double> forgetting() const;
  /// The same from the source model in the run's norm mode: what the moved parameters alone cost.
  std::optional<double> forgetting_in_norm() const;
  /// Mean accuracy while adapting to the source's hold-outs.
  std::optional<double> validation_accuracy() const;

  nlohmann::ordered_json to_json() const;
  /// Throws Error when it is not a record, or of a newer schema.
  static Record from_json(const nlohmann::json& json);
};

/// Mean of the accuracies, each domain counting the same; NaN without any.
double mean_accuracy(const std::vector<Score>& scores);

/// Throws Error unless the line is of a schema this program reads.
void check_schema(const nlohmann::json& line);

}  // namespace gala
