#pragma once
#include <memory>
#include <vector>

#include "gala/loss/loss.h"
#include "gala/loss/sample_rule.h"
#include "gala/method/after_step.h"
#include "gala/method/drift.h"
#include "gala/method/method_options.h"
#include "gala/method/penalty.h"
#include "gala/method/perturbation.h"
#include "gala/method/readout.h"
#include "gala/method/reset_rule.h"
#include "gala/method/store.h"
#include "gala/method/teacher.h"
#include "gala/optim/optimizer.h"
#include "gala/select/selector.h"
#include "gala/view/view.h"

namespace gala {

/// What a method is made of. Handed to an adapter, those that are null are what the options name.
struct MethodParts {
  std::unique_ptr<Loss> loss = {};
  std::unique_ptr<Optimizer> optimizer = {};
  std::unique_ptr<Selector> selector = {};
  std::unique_ptr<SampleRule> samples = {};                 ///< null: every image counts alike
  std::vector<std::unique_ptr<AfterStep>> after_step = {};  ///< in this order
  std::unique_ptr<Readout> readout = {};                    ///< null: the logits answer
  std::unique_ptr<View> view = {};
  std::unique_ptr<Teacher> teacher = {};
  std::unique_ptr<Perturbation> perturb = {};
  std::unique_ptr<Penalty> penalty = {};
  std::unique_ptr<ResetRule> reset = {};
  std::unique_ptr<Store> store = {};  ///< null: steps are made on the batch at hand
  std::unique_ptr<Drift> drift = {};

  bool wants_source_images() const { return drift || (penalty && penalty->wants_source_images()); }

  /// Calls `use` with each of the parts that remember.
  template <class Use>
  void for_each(const Use& use) const {
    if (samples) use(*samples);
    if (store) use(*store);
    if (drift) use(*drift);
    if (teacher) use(*teacher);
    if (penalty) use(*penalty);
    for (const auto& part : after_step) use(*part);
    if (reset) use(*reset);
    if (readout) use(*readout);
  }
};

/// Makes every part that the options name and `parts` lacks. Returns the types of those it had.
std::vector<std::string> make_parts(const MethodOptions& options, MethodParts& parts);

/// The options with every part as a spec with every option of it written out. Throws ConfigError for names and
/// values that do not exist.
MethodOptions written_out(MethodOptions options);

}  // namespace gala
