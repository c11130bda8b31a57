#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gala/base/options.h"
#include "gala/step/health.h"
#include "gala/step/label_spread.h"

namespace gala {

/// What happens when collapse is found.
enum class GuardAction {
  kOff,      ///< nothing is watched
  kWarn,     ///< it is said, and changes no number
  kStop,     ///< parameters stay as they are from then on; answers go on
  kRollback  ///< back to the source or to the last healthy parameters, and on from there
};
constexpr std::array<std::string_view, 4> enum_names(GuardAction) {
  return {"off", "warn", "stop", "rollback"};
}

enum class RollbackTarget { kSource, kHealthy };
constexpr std::array<std::string_view, 2> enum_names(RollbackTarget) {
  return {"source", "healthy"};
}

struct GuardOptions {
  std::int64_t horizon = 500;
  std::int64_t every = 10;
  double diversity = 0.5;
  double entropy = 0.02;
  double displacement = 0.2;
  RollbackTarget to = RollbackTarget::kSource;
  template <class Visitor>
  static void visit(Visitor&& option) {
    option("horizon", &GuardOptions::horizon, "newest answers that are judged together");
    option("every", &GuardOptions::every, "batches between two judgements");
    option(
        "diversity", &GuardOptions::diversity,
        "where the classes in use, beyond one, fall below this share of the first horizon's, every "
        "judgement asks the source's parameters, too");
    option("entropy", &GuardOptions::entropy,
           "sign when the mean entropy falls below this share of the first horizon's; where few "
           "classes are in use, too, a collapse");
    option("displacement", &GuardOptions::displacement,
           "where |θ - θ_source| / |θ_source| exceeds this, every judgement asks the source's "
           "parameters, too");
    option("to", &GuardOptions::to, "where `rollback` goes");
  }
};

/// One judgement.
struct HealthEvent {
  std::int64_t batch = 0;
  bool collapsed = false;
  /// "not finite" (answers), "lost" (parameters), "refused" (several steps in a row), "disagreement" (with the
  /// source's parameters); "diversity" and "entropy" together; a sign alone is each of these two, and "displacement"
  std::vector<std::string> reasons;
  std::vector<std::int64_t> histogram;  ///< answers by class over the horizon
  double effective_classes = 0;         ///< exp of the histogram's entropy
  double entropy = 0;                   ///< mean over the horizon
  double displacement = 0;              ///< |θ - θ_source| / |θ_source|
  bool exact = true;                    ///< false: the displacement is at most that
  /// Share of answers beyond chance that the source's parameters give, too: 1 all, 0 no more than chance.
  /// Empty where they were not asked.
  std::optional<double> agreement;
  double drift = 0;  ///< total variation between this histogram and the first horizon's, 0..1
  double update_norm = 0;
  std::int64_t refused = 0;
  std::int64_t not_finite = 0;  ///< answers since the last judgement that the adapted model failed
  std::string action;  ///< "none", "warn", "stop", "rollback to source", "rollback to healthy"

  nlohmann::ordered_json to_json() const;
};

/// Tells collapse from health without labels, from the histogram and entropy of recent answers and
/// from what the source's parameters answer. The first `horizon` answers are the reference: they are nearly
/// the source model's.
///
/// The answers alone do not tell a collapse. Few classes in use may be what the stream shows, as where neighbours are
/// alike; parameters that are far from the source may be right, since with a rate that never falls they go ever farther; and a
/// collapse can keep all classes in use (SHOT's diversity term does that), or be over before the reference is there. But
/// the source's parameters do: after a collapse they answer otherwise. They are asked at the first judgement, the second,
/// the fourth and so on, and at each where few classes are in use (`diversity`) or |θ - θ_source| / |θ_source| exceeds
/// `displacement`. It is a collapse where, of the newest kCompared images or more, the share p of answers that are the
/// same is, beyond the chance c, (p - c) / (1 - c) < kAgreement. c is what answers that know nothing of the images would
/// have in common with the source's, a half at most, by how often those were of each class so far (and a horizon of even
/// ones), at judgements with many classes in use.
///
/// Where neighbours are alike in class, as a camera's pictures are, the source is a poor witness: the statistics of
/// a batch are those of a few classes. There kAgreementInClumps is asked for. Neighbours are alike where, of the recent
/// answers, the share of those that are as the one before is, beyond the chance of that by the histogram, above kAlike,
/// which a collapse to a few classes does not bring about; or where the spread of labels exceeds kSpread, since within a long
/// clump all are of one class. For a while after a collapse that holds, too.
///
/// The source's own answers may be of few classes, too, under a corruption that bends them. So few classes in use, with a mean
/// entropy below the share `entropy` of the first horizon's, are a collapse whatever it says.
///
/// Answers that are not finite where the source model's are, an update that leaves nothing of the
/// source (before parameters can overflow), and kRefusedInARow refused steps in a row are a collapse at
/// once, whatever `horizon` and `every`; while it lasts, it is told again every `every` batches. An image that the source model cannot answer
/// either is its own fault, and no alarm.
class Guard {
 public:
  static constexpr std::int64_t kRefusedInARow = 3;
  static constexpr std::int64_t kCompared = 32;  ///< or the horizon, where that is less
  static constexpr double kAgreement = 0.5, kAgreementInClumps = 0.25;
  static constexpr double kAlike = 0.05, kSpread = 20;

  /// `text` is "off", "warn", "stop", "rollback:to=healthy", ... with the options above.
  Guard(std::string_view text, std::int64_t classes);

  GuardAction action() const { return action_; }
  const GuardOptions& options() const { return options_; }

  /// Takes a batch in. True when a judgement is due.
  bool observe(const BatchHealth& batch);
  /// True beyond the limit, and where there is no telling.
  bool is_far(double displacement) const { return !(displacement <= options_.displacement); }
  /// True where the judgement that is due, by this relative displacement, needs the source's answers.
  bool asks_source(double displacement) const;
  /// Takes in what the parameters at hand answer to some images, and what the source's do; kNoClass is no answer.
  void compare(const std::vector<std::int64_t>& ours, const std::vector<std::int64_t>& theirs);
  /// Judges the recent answers, given the relative displacement or a bound on it.
  HealthEvent judge(double displacement, bool exact = true);

  /// Forgets the recent answers (after a rollback); with `all`, the reference too.
  void forget(bool all);
  nlohmann::json save() const;
  void load(const nlohmann::json& state);

 private:
  struct Entry {
    std::vector<std::int64_t> predictions;
    double entropy_sum;
  };
  struct Reference {
    std::vector<double> shares;
    double effective_classes;
    double entropy;
  };

  struct Comparison {
    std::vector<std::int64_t> ours;
    std::int64_t agreed = 0;
  };

  bool raises_alarm(const BatchHealth& batch);
  bool is_narrow() const;
  bool is_in_clumps() const;
  std::optional<double> agreement() const;
  void take_in(const BatchHealth& batch);

  GuardAction action_ = GuardAction::kWarn;
  GuardOptions options_;
  std::int64_t batches_ = 0;
  std::int64_t judged_ = 0;
  std::int64_t seen_ = 0;  ///< answers in recent_
  std::deque<Entry> recent_;
  std::vector<std::int64_t> histogram_;
  double entropy_sum_ = 0;
  double update_norm_ = 0;
  std::int64_t refused_ = 0;
  std::int64_t refused_in_a_row_ = 0;  ///< without a broken image as an excuse
  std::int64_t not_finite_ = 0;
  bool lost_ = false;
  bool alarmed_ = false;  ///< the newest batch was an alarm
  LabelSpread spread_;
  std::deque<Comparison> compared_;   ///< the newest
  std::vector<std::int64_t> theirs_;  ///< the source's answers by class, where ours were not narrow
  std::optional<Reference> reference_;
};

}  // namespace gala
