#include "gala/adapt/fit.h"

#include "gala/base/error.h"

namespace gala {
namespace {

void check_numbers(const MethodOptions& options) {
  for (const auto& [name, value] :
       {std::pair{"inner_steps", options.inner_steps}, {"adapt_every", options.adapt_every}}) {
    if (value < 1) fail<ConfigError>("{} must be at least 1, not {}", name, value);
  }
  if (options.seed < 0) fail<ConfigError>("seed must be at least 0, not {}", options.seed);
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
        "nobody looks by the view: the loss consistency, the sample rule deyo and the teacher mean "
        "with "
        "views above 0 would");
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
  check_numbers(options);
  Selector& selector = *parts.selector;
  if (!selector.idle()) {
    check_teacher(options, parts, model);
    check_view(parts);
    if (parts.penalty && parts.penalty->wants_source_images() && !has_source_images) {
      fail<ConfigError>(
          "the penalty learns from images of the source: name some (source_data "
          "cifar10:path=DIR,split=train), or leave it out (penalty none)");
    }
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
