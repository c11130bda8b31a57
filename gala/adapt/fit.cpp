#include "gala/adapt/fit.h"

#include "gala/base/error.h"
#include "gala/method/ranges.h"

namespace gala {
namespace {

void check_store(const MethodOptions& options, const MethodParts& parts) {
  if (parts.samples && parts.samples->wants_ages() &&
      !(parts.store && parts.store->answers_first())) {
    fail<ConfigError>(
        "the sample rule asks how old images are, and nobody keeps them (such as store balanced)");
  }
  if (!parts.store) return;
  if (options.episodic) {
    fail<ConfigError>(
        "episodic goes back before every batch, and a store would be empty each time");
  }
  if (options.adapt_every > 1) {
    fail<ConfigError>(
        "with a store it is the store that says when to adapt (adapt_every 1, not {})",
        options.adapt_every);
  }
  if (parts.store->answers_first() && options.predict == PredictWith::kAfter) {
    fail<ConfigError>(
        "predict after has nothing to answer: with this store a batch is answered before the step");
  }
}

/// Where the student sees images by the view alone, its pass answers nobody.
void check_answer(const MethodOptions& options, const MethodParts& parts) {
  const LossNeeds needs = parts.loss->needs();
  if (needs.looks > 1 && parts.samples) {
    fail<ConfigError>(
        "the loss looks at every image {} times, and a sample rule weighs images seen once "
        "(samples "
        "none)",
        needs.looks);
  }
  const bool first = parts.store && parts.store->answers_first();
  if (needs.images || first || options.answer == AnswerWith::kTeacher ||
      options.predict == PredictWith::kAfter) {
    return;
  }
  fail<ConfigError>(
      "the loss shows the student images by the view alone, which is no answer to the images "
      "themselves (answer teacher, predict after, or store balanced)");
}

void check_source(const MethodParts& parts, bool has_source_images) {
  const bool penalty = parts.penalty && parts.penalty->wants_source_images();
  if (penalty && parts.drift) {
    fail<ConfigError>(
        "penalty and drift would both learn from images of the source, which are read once "
        "(penalty "
        "cosine or distance, or drift none)");
  }
  if (parts.wants_source_images() && !has_source_images) {
    fail<ConfigError>(
        "the {} learns from images of the source: name some (source_data "
        "cifar10:path=DIR,split=train), or leave it out ({} none)",
        penalty ? "penalty" : "drift", penalty ? "penalty" : "drift");
  }
  if (has_source_images && !parts.wants_source_images()) {
    fail<ConfigError>(
        "nobody learns from images of the source (source_data): the penalty fisher and the drift "
        "features would");
  }
  if (parts.drift && !parts.penalty && !parts.teacher) {
    fail<ConfigError>("nobody asks the drift: a penalty or a teacher would");
  }
}

void check_view(const MethodParts& parts) {
  const bool loss = parts.loss->needs().view != SecondLook::kNone;
  const bool samples = parts.samples && parts.samples->looks_again();
  const bool teacher = parts.teacher && parts.teacher->looks() > 0;
  if (!parts.view && (loss || samples || teacher)) {
    fail<ConfigError>(
        "the {} looks at images a second time, and the method has no view (such as view {})",
        loss      ? "loss"
        : samples ? "sample rule"
                  : "teacher",
        samples ? "patches" : "augment");
  }
  if (parts.view && !(loss || samples || teacher)) {
    fail<ConfigError>(
        "nobody looks by the view: a loss such as consistency, the sample rule deyo and the "
        "teacher "
        "mean with views above 0 would");
  }
}

void check_teacher(const MethodOptions& options, const MethodParts& parts, const Model& model) {
  const bool asked = parts.loss->needs().teacher || options.answer != AnswerWith::kStudent;
  if (!parts.teacher && asked) {
    fail<ConfigError>("{} needs a teacher, and the method has none (such as teacher mean)",
                      parts.loss->needs().teacher ? std::string("the loss")
                                                  : "answer " + format_value(options.answer));
  }
  if (!parts.teacher) return;
  if (!asked) {
    fail<ConfigError>(
        "nobody asks the teacher: the loss teacher_cross_entropy would, and answer teacher or sum");
  }
  if (options.answer != AnswerWith::kStudent && options.predict == PredictWith::kAfter) {
    fail<ConfigError>("predict after is the student's answer, and answer {} the teacher's",
                      format_value(options.answer));
  }
  const NormKind norm =
      options.norm.empty() ? model.norm_mode().kind : NormMode::parse(options.norm).kind;
  if (norm == NormKind::kSource && Spec::parse(options.teacher).name == "source") {
    fail<ConfigError>(
        "the teacher source under norm source is the student as it begins: there is nothing to "
        "learn "
        "from it (norm batch, or teacher mean)");
  }
}

}  // namespace

Fit fit(Model& model, const MethodOptions& options, const MethodParts& parts,
        bool has_source_images) {
  check_ranges(method_ranges(), "", options);
  check_store(options, parts);
  Selector& selector = *parts.selector;
  if (!selector.idle()) {
    check_teacher(options, parts, model);
    check_view(parts);
    check_answer(options, parts);
    check_source(parts, has_source_images);
  }
  Fit fit;
  fit.granularity = options.partition.value_or(selector.default_granularity());
  // In a partition of blocks the head is in none.
  fit.head = fit.granularity != Granularity::kBlock &&
             (options.head == HeadRule::kAuto ? parts.loss->adapts_head()
                                              : options.head == HeadRule::kAdapt);
  ParameterFilter filter{.head = fit.head, .include = options.include, .exclude = options.exclude};
  selector.restrict(filter);
  fit.head = filter.head;
  fit.adapted = adapted_parameters(model, filter, fit.granularity);
  fit.layers = make_partition(fit.adapted, fit.granularity);
  selector.attach(fit.layers);
  return fit;
}

}  // namespace gala
