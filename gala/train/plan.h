#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "gala/base/options.h"
#include "gala/base/problems.h"
#include "gala/model/precision.h"
#include "gala/train/schedule.h"

namespace gala {

/// How training images are varied.
enum class Augmentation {
  kNone,
  kCropFlip,  ///< 4 pixels of black around, a random crop of the old size, a flip half of the time
  kAugMix,    ///< the same, then chains of changes mixed in
  kDomainBed  ///< a random window, flip, colour jitter, sometimes grey
};
constexpr std::array<std::string_view, 4> enum_names(Augmentation) {
  return {"none", "crop_flip", "augmix", "domainbed"};
}

/// Which images make a batch.
enum class Sampling {
  kShuffled,  ///< every image once an epoch, in a new order
  kPerDomain  ///< batch_size of each domain, drawn with replacement
};
constexpr std::array<std::string_view, 2> enum_names(Sampling) {
  return {"shuffled", "per_domain"};
}

/// Which weights of a run are written.
enum class Keep {
  kLast,
  kBest  ///< those with the best mean accuracy over the evaluation domains; the first of equals
};
constexpr std::array<std::string_view, 2> enum_names(Keep) {
  return {"last", "best"};
}

/// The number type of the weights that are written.
enum class WeightType { kFloat32, kFloat16 };
constexpr std::array<std::string_view, 2> enum_names(WeightType) {
  return {"float32", "float16"};
}

/// A training run as a TOML file describes it, section by section. Networks, data sets and
/// optimizers are specs, as on the command line.
struct TrainPlan {
  struct ModelPart {
    std::string network;
    std::string init;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option(
          "network", &ModelPart::network,
          "what to train: wide_resnet:depth=16,width=2; without classes: as many as the data has");
      option("init", &ModelPart::init,
             "weights to start from, but for a head of other classes; none: drawn from the seed");
    }
  };

  struct DataPart {
    std::string train;
    std::string evaluation;
    Augmentation augmentation = Augmentation::kNone;
    Sampling sampling = Sampling::kShuffled;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("train", &DataPart::train, "what to learn from: cifar10:path=DIR,split=train");
      option("evaluation", &DataPart::evaluation, "what to score: cifar10:path=DIR,split=test");
      option("augmentation", &DataPart::augmentation, "how training images are varied");
      option("sampling", &DataPart::sampling, "which images make a batch");
    }
  };

  struct TrainPart {
    std::int64_t epochs = 200;
    std::int64_t steps = 0;
    std::int64_t batch_size = 128;
    std::string optimizer = "sgd:rate=0.1,momentum=0.9,nesterov=yes,weight_decay=0.0005";
    ScheduleKind schedule = ScheduleKind::kCosine;
    double warmup_epochs = 0;
    double label_smoothing = 0;
    double consistency = 0;
    Precision precision = Precision::kTf32;
    bool channels_last = true;
    std::int64_t seed = 0;
    std::int64_t evaluate_every = 0;
    Keep keep = Keep::kLast;
    std::int64_t checkpoint_every = 0;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("epochs", &TrainPart::epochs, "passes over the training data");
      option("steps", &TrainPart::steps, "length of a run with sampling per_domain");
      option("batch_size", &TrainPart::batch_size,
             "images a step, or a step and domain; what does not fill one is left out");
      option("optimizer", &TrainPart::optimizer, "how the weights move, with its full rate");
      option("schedule", &TrainPart::schedule, "how the rate goes on after the warm-up");
      option("warmup_epochs", &TrainPart::warmup_epochs,
             "epochs in which the rate rises; may be a fraction");
      option("label_smoothing", &TrainPart::label_smoothing,
             "share of each label spread over all classes");
      option("consistency", &TrainPart::consistency,
             "weight of the divergence between three augmix views of an image; 0: one view");
      option("precision", &TrainPart::precision,
             "of convolutions and products; tf32 is float32 but on a GPU");
      option("channels_last", &TrainPart::channels_last,
             "memory layout on a GPU, where it is mostly faster");
      option("seed", &TrainPart::seed, "of first weights, order and augmentation");
      option("evaluate_every", &TrainPart::evaluate_every,
             "epochs (per_domain: steps) between evaluations; 0: only at the end");
      option("keep", &TrainPart::keep, "which weights are written");
      option("checkpoint_every", &TrainPart::checkpoint_every,
             "steps between checkpoints; 0: only after epochs and evaluations");
    }
  };

  struct OutputPart {
    std::string weights;
    WeightType type = WeightType::kFloat32;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("weights", &OutputPart::weights, "safetensors file to write");
      option("type", &OutputPart::type, "number type of the file");
    }
  };

  ModelPart model;
  DataPart data;
  TrainPart train;
  OutputPart output;
  std::string text;  ///< the file as it was read
  /// The file's parameters with the values they were given, and keys that were set as "section.key":
  /// with the text they give the same plan again.
  std::map<std::string, std::string> parameters;

  /// Lets every data spec that has a `path` read from another folder.
  void set_data_path(const std::string& path);
};

/// Something in a plan that is given from outside: a parameter by its name, or any key as
/// "section.key".
struct PlanSetting {
  std::string name;
  std::string value;

  /// From "name=value". Throws ConfigError.
  static PlanSetting parse(std::string_view text);
};

/// Understands a plan. A plan may have a section [parameters]; "{name}" in a text of another section
/// stands for the parameter's value, and as the whole of a text for the value with its type. What is
/// wrong with it - syntax, unknown sections and keys, values of another type or out of range, missing
/// keys - goes into `problems`, each with its line or key.
TrainPlan parse_train_plan(std::string text, Problems& problems,
                           std::span<const PlanSetting> settings = {});
/// The same from a file; throws FormatError when it cannot be read.
TrainPlan read_train_plan(const std::filesystem::path& path, Problems& problems,
                          std::span<const PlanSetting> settings = {});

}  // namespace gala
