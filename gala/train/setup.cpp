#include "gala/train/setup.h"

#include <limits>

#include "gala/base/random.h"
#include "gala/data/augment.h"
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

}  // namespace

Training open_training(const TrainPlan& plan, Problems& problems) {
  Training training;
  if (!plan.model.network.empty()) {
    const bool made = problems.attempt("model.network", [&] {
      training.model =
          make_model(Spec::parse(plan.model.network),
                     static_cast<std::uint64_t>(std::max<std::int64_t>(0, plan.train.seed)));
    });
    if (made && !plan.model.weights.empty()) {
      problems.attempt("model.weights", [&] { load_weights(*training.model, plan.model.weights); });
    }
  }
  problems.attempt("train.optimizer", [&] { make_optimizer(Spec::parse(plan.train.optimizer)); });
  const bool augmented = plan.data.augmentation != Augmentation::kNone;
  if (!plan.data.train.empty()) {
    problems.attempt("data.train", [&] {
      training.train = open_data(Spec::parse(plan.data.train));
      check_data(training.train, training.model.get(), augmented);
      const std::int64_t images = images_in(training.train);
      if (images > std::numeric_limits<std::int32_t>::max()) {
        fail<ConfigError>("{} images are too many", images);
      }
      if (images < plan.train.batch_size) {
        fail<ConfigError>("{} images do not fill a batch of {}", images, plan.train.batch_size);
      }
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
    for (std::size_t i = shuffled.size(); i > 1; --i) {
      std::swap(shuffled[i - 1], shuffled[random.below(i)]);
    }
    stream.segments.push_back({fmt::format("epoch {}", epoch + 1), epoch * size, size});
    stream.items.insert(stream.items.end(), shuffled.begin(), shuffled.end());
  }
  return stream;
}

Stream evaluation_stream(const DataSource& source) {
  return make_stream(default_stream(source), source, /*seed=*/0);
}

std::unique_ptr<const Transform> make_transform(Augmentation augmentation,
                                                const Preprocessing& preprocessing,
                                                std::uint64_t seed) {
  if (augmentation == Augmentation::kCropFlip) {
    return std::make_unique<CropFlipAugment>(preprocessing, seed);
  }
  return std::make_unique<EvaluationTransform>(preprocessing);
}

}  // namespace gala
