#include "gala/train/setup.h"

#include <limits>

#include "gala/base/random.h"
#include "gala/data/augmix.h"
#include "gala/model/weights.h"
#include "gala/optim/optimizer.h"

namespace gala {
namespace {

void check_data(const DataSource& source, const Model* model, bool augmented) {
  for (const Domain& domain : source.domains) {
    if (!domain.data->labelled()) fail<ConfigError>("{} has no labels", source.spec.to_string());
    if (augmented && domain.data->plane_size()[0] > 0) {
      fail<ConfigError>(
          "float arrays are taken as they are, so data.augmentation must be none "
          "(uint8 arrays can be augmented)");
    }
  }
  if (!model) return;
  const std::int64_t classes = source.classes();
  const bool named = !source.class_names().empty();
  if (classes > model->classes() || (named && classes != model->classes())) {
    fail<ConfigError>("{} has {} classes, but the head of {} has {}", source.spec.name, classes,
                      model->spec().name, model->classes());
  }
}

std::int64_t images_in(const DataSource& source) {
  std::int64_t count = 0;
  for (const Domain& domain : source.domains) count += domain.data->size();
  return count;
}

void check_size(const TrainPlan& plan, const DataSource& source) {
  const std::int64_t images = images_in(source);
  if (images > std::numeric_limits<std::int32_t>::max()) {
    fail<ConfigError>("{} images are too many", images);
  }
  if (plan.data.sampling == Sampling::kShuffled && images < plan.train.batch_size) {
    fail<ConfigError>("{} images do not fill a batch of {}", images, plan.train.batch_size);
  }
}

/// With as many classes as the data has, unless the spec says how many.
std::unique_ptr<Model> make_network(const TrainPlan& plan, const DataSource& data) {
  Spec spec = Spec::parse(plan.model.network);
  if (!spec.find("classes") && data.classes() > 0) {
    spec.set("classes", std::to_string(data.classes()));
  }
  return make_model(spec, static_cast<std::uint64_t>(std::max<std::int64_t>(0, plan.train.seed)));
}

}  // namespace

Training open_training(const TrainPlan& plan, Problems& problems) {
  Training training;
  bool opened = false;
  if (!plan.data.train.empty()) {
    opened = problems.attempt("data.train",
                              [&] { training.train = open_data(Spec::parse(plan.data.train)); });
  }
  if (!plan.model.network.empty()) {
    const bool made = problems.attempt(
        "model.network", [&] { training.model = make_network(plan, training.train); });
    if (made && !plan.model.init.empty()) {
      problems.attempt("model.init", [&] {
        LoadedWeights first = load_first_weights(*training.model, plan.model.init);
        training.prefix = std::move(first.prefix);
        training.not_taken = std::move(first.not_taken);
        training.default_preprocessing = !first.preprocessing;
      });
    }
  }
  problems.attempt("train.optimizer", [&] { make_optimizer(Spec::parse(plan.train.optimizer)); });
  const bool augmented = plan.data.augmentation != Augmentation::kNone;
  if (opened) {
    problems.attempt("data.train", [&] {
      check_data(training.train, training.model.get(), augmented);
      check_size(plan, training.train);
    });
  }
  if (!plan.data.evaluation.empty()) {
    problems.attempt("data.evaluation", [&] {
      training.evaluation = open_data(Spec::parse(plan.data.evaluation));
      check_data(*training.evaluation, training.model.get(), /*augmented=*/false);
    });
  }
  if (problems.empty() && !training.train.class_names().empty()) {
    training.model->set_class_names(training.train.class_names());
  }
  return training;
}

Stream training_stream(const DataSource& source, std::int64_t epochs, std::uint64_t seed) {
  Stream stream;
  stream.spec = {"training", {{"epochs", std::to_string(epochs)}}};
  stream.domains = source.domains;
  stream.drop_last = true;
  std::vector<StreamItem> order;
  for (std::size_t d = 0; d < source.domains.size(); ++d) {
    for (std::int64_t i = 0; i < source.domains[d].data->size(); ++i) {
      order.push_back({static_cast<std::int32_t>(d), static_cast<std::int32_t>(i)});
    }
  }
  const auto size = static_cast<std::int64_t>(order.size());
  stream.items.reserve(order.size() * static_cast<std::size_t>(epochs));
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    std::vector<StreamItem> shuffled = order;
    Random random(seed, "training order", {static_cast<std::uint64_t>(epoch)});
    random.shuffle(shuffled);
    stream.segments.push_back({fmt::format("epoch {}", epoch + 1), epoch * size, size});
    stream.items.insert(stream.items.end(), shuffled.begin(), shuffled.end());
  }
  return stream;
}

Stream sampled_stream(const DataSource& source, std::int64_t steps, std::int64_t batch_size,
                      std::uint64_t seed) {
  Stream stream;
  stream.spec = {"sampled", {{"steps", std::to_string(steps)}}};
  stream.domains = source.domains;
  stream.drop_last = true;
  const auto domains = static_cast<std::int64_t>(source.domains.size());
  stream.items.reserve(static_cast<std::size_t>(steps * domains * batch_size));
  for (std::int64_t step = 0; step < steps; ++step) {
    Random random(seed, "training sample", {static_cast<std::uint64_t>(step)});
    for (std::int64_t d = 0; d < domains; ++d) {
      const Dataset& data = *source.domains[static_cast<std::size_t>(d)].data;
      for (std::int64_t i = 0; i < batch_size; ++i) {
        stream.items.push_back(
            {static_cast<std::int32_t>(d),
             static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(data.size())))});
      }
    }
  }
  stream.segments.push_back({"all steps", 0, stream.size()});
  return stream;
}

Stream repeat_batches(const Stream& stream, std::int64_t batch_size, std::int64_t views) {
  Stream repeated;
  repeated.spec = stream.spec;
  repeated.domains = stream.domains;
  repeated.drop_last = stream.drop_last;
  for (const StreamSegment& segment : stream.segments) {
    repeated.segments.push_back({segment.name, 0, 0});
  }
  for (const BatchSpan& span : stream.batches(batch_size)) {
    if (span.size < batch_size) continue;
    const auto first = stream.items.begin() + span.begin;
    for (std::int64_t view = 0; view < views; ++view) {
      repeated.items.insert(repeated.items.end(), first, first + span.size);
    }
    repeated.segments[static_cast<std::size_t>(span.segment)].size += span.size * views;
  }
  std::int64_t begin = 0;
  for (StreamSegment& segment : repeated.segments) {
    segment.begin = begin;
    begin += segment.size;
  }
  return repeated;
}

Stream evaluation_stream(const DataSource& source) {
  return make_stream(default_stream(source), source, /*seed=*/0);
}

std::string without_path(Spec spec) {
  std::erase_if(spec.options, [](const auto& option) { return option.first == "path"; });
  return spec.to_string();
}

namespace {

std::unique_ptr<const Transform> make_transform(const TrainPlan& plan,
                                                const Preprocessing& preprocessing,
                                                std::int64_t view_size) {
  const auto seed = static_cast<std::uint64_t>(plan.train.seed);
  switch (plan.data.augmentation) {
    case Augmentation::kNone:
      break;
    case Augmentation::kCropFlip:
      return std::make_unique<CropFlipAugment>(preprocessing, seed);
    case Augmentation::kAugMix:
      return std::make_unique<AugMixAugment>(preprocessing, seed, view_size);
    case Augmentation::kDomainBed:
      return std::make_unique<DomainBedAugment>(preprocessing, seed);
  }
  return std::make_unique<EvaluationTransform>(preprocessing);
}

}  // namespace

Curriculum make_curriculum(const Training& training, const TrainPlan& plan) {
  const TrainPlan::TrainPart& train = plan.train;
  const auto seed = static_cast<std::uint64_t>(train.seed);
  const bool per_domain = plan.data.sampling == Sampling::kPerDomain;
  Curriculum result;
  result.batch_size = train.batch_size;
  if (per_domain) {
    result.stream = sampled_stream(training.train, train.steps, train.batch_size, seed);
    result.batch_size *= static_cast<std::int64_t>(training.train.domains.size());
  } else {
    result.stream = training_stream(training.train, train.epochs, seed);
  }
  const bool several = train.consistency > 0;
  if (several) {
    result.views = AugMixAugment::kViews;
    result.stream = repeat_batches(result.stream, train.batch_size, result.views);
    result.batch_size *= result.views;
  }
  result.transform =
      make_transform(plan, training.model->preprocessing(), several ? train.batch_size : 0);
  result.settings = {{"data", without_path(training.train.spec)},
                     {"images", images_in(training.train)},
                     {"augmentation", format_value(plan.data.augmentation)},
                     {"sampling", format_value(plan.data.sampling)},
                     {per_domain ? "steps" : "epochs", per_domain ? train.steps : train.epochs},
                     {"batch_size", train.batch_size},
                     {"keep", format_value(train.keep)}};
  if (train.keep == Keep::kBest) {
    // Only then do evaluations decide what is written.
    result.settings["evaluation"] = without_path(training.evaluation->spec);
    result.settings["evaluate_every"] = train.evaluate_every;
  }
  return result;
}

}  // namespace gala
