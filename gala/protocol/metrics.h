#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gala/protocol/record.h"

namespace gala {

/// NaN without values.
double mean(std::span<const double> values);
/// With n - 1 below the fraction; nothing for fewer than two values.
std::optional<double> sample_deviation(std::span<const double> values);
/// Of values in ascending order, linear between neighbours as NumPy's default; NaN without values.
double quantile(std::span<const double> sorted, double share);

struct Interval {
  double low = 0, high = 0;
};
/// Percentile bootstrap of the mean: equal seeds give equal intervals on every machine. Nothing for
/// fewer than two values.
std::optional<Interval> bootstrap_interval(std::span<const double> values, double level = 0.95,
                                           std::int64_t resamples = 10'000, std::uint64_t seed = 0);

/// How likely values with signs by chance have a mean as far from 0: 1 for what chance does always. Over all
/// changes of sign where they are few, else over `draws` of them. Nothing for fewer than two values.
std::optional<double> sign_flip_test(std::span<const double> values, std::int64_t draws = 10'000,
                                     std::uint64_t seed = 0);

/// Ranks from 1; equal values share the mean of their ranks.
std::vector<double> average_ranks(std::span<const double> values);
/// Spearman's rank correlation, ties by average ranks; nothing for fewer than two pairs or when one
/// side is constant.
std::optional<double> spearman(std::span<const double> x, std::span<const double> y);

/// The error at each visit of a stream that recurs, every domain counting the same; empty for other streams,
/// and where a visit is not whole.
std::vector<double> visit_errors(const Record& record);

/// Milliseconds until an image is answered, steps included and loading not; nothing where it is not known.
std::optional<double> ms_per_image(const Record& record);

/// How often each block was chosen, its layers counted to it; number i is block i + 1. The head is in
/// no block.
std::vector<double> block_choices(const Record& record);

/// Whether the run's selector is gala: others have no window to go round in. A record without a selector
/// is the trace of an adaptation, which does not tell it.
bool chooses_by_cosine(const Record& record);
/// How near the choices of a run that moves one layer at a time come to a rotation: as it was counted, or
/// from its choices where the record is older. Nothing for other runs, nor where an older record does not
/// show where its windows open.
std::optional<Rotation> rotation_of(const Record& record);

/// The block a run adapts alone, when it is such a run (`select = "fixed:layers=block2"` with
/// partition block).
std::optional<int> fixed_block(const Record& record);

/// A record and one of the places it has.
struct Placed {
  const Record* record = nullptr;
  const Labels* labels = nullptr;
};

/// The runs in the places that are `wanted`, in store order. Where two runs claim one place, that of the
/// later line has it; `contested` takes the number of such cases.
std::vector<Placed> placed_runs(const std::vector<Record>& records,
                                const std::function<bool(const Placed&)>& wanted,
                                std::int64_t* contested = nullptr);
/// Those of a plan, or of all plans when it is empty.
std::vector<Placed> placed_runs(const std::vector<Record>& records, const std::string& plan,
                                std::int64_t* contested = nullptr);

/// Says, a sentence each, where runs that share a training plan were made with different weights:
/// training was repeated in between, and need not have given the same bits.
std::vector<std::string> mixed_weights(std::span<const Placed> runs);

/// One shift under one loss, seen through runs that adapt one block alone.
struct BlockStudy {
  Labels shift;                         ///< dataset, backbone, environment, trial, loss
  std::map<int, const Record*> blocks;  ///< by block, from 1
  const Record* best = nullptr;         ///< of them, by accuracy while adapting
  const Record* worst = nullptr;
};

/// The per-block oracle of every shift and loss among the runs. Each combination of block, shift and
/// loss must be there once: choose hyper-parameters first. The paper's Best and Worst Block rows are
/// its `best` and `worst`.
std::vector<BlockStudy> study_blocks(std::span<const Placed> runs);

/// Spearman's correlation between how often the run chose each block and how well the block does
/// alone; nothing where a block was not run or one side is constant.
std::optional<double> rank_correlation(const Record& run, const BlockStudy& oracle);

/// True when both labels are of one shift: dataset, backbone, environment, trial, loss.
bool same_shift(const Labels& a, const Labels& b);

}  // namespace gala
