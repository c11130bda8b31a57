#include <array>

#include "gala/base/error.h"
#include "gala/base/words.h"
#include "gala/model/exported/exported_model.h"
#include "gala/model/model.h"
#include "gala/model/resnet.h"
#include "gala/model/resnext.h"
#include "gala/model/wide_resnet.h"

namespace gala {
namespace {

constexpr std::array kModels{
    registry_entry<Model, ResNet18>("resnet18", "ResNet-18 for ImageNet, torchvision's names"),
    registry_entry<Model, ResNet34>("resnet34", "ResNet-34 for ImageNet, torchvision's names"),
    registry_entry<Model, ResNet50>("resnet50", "ResNet-50 for ImageNet, torchvision's names"),
    registry_entry<Model, WideResNet>("wide_resnet", "WRN for small images, RobustBench's names"),
    registry_entry<Model, ResNext29>("resnext29",
                                     "ResNeXt-29 for small images, RobustBench's names"),
    registry_entry<Model, ExportedModel>("exported",
                                         "any network, from the file torch.export.save wrote"),
};

}  // namespace

std::span<const RegistryEntry<Model>> model_registry() {
  return kModels;
}

std::unique_ptr<Model> make_model(const Spec& spec, std::uint64_t seed) {
  try {
    std::unique_ptr<Model> model = make_from_registry(model_registry(), spec);
    if (!model->brings_weights()) model->initialize(seed);
    return model;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& problem) {  // such as a network that no memory holds
    fail<ConfigError>("model {}: cannot be made: {}", spec.to_string(), in_words(problem));
  }
}

}  // namespace gala
