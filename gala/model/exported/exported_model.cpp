#include "gala/model/exported/exported_model.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>

#include "gala/base/error.h"
#include "gala/base/words.h"
#include "gala/device/capture_gate.h"
#include "gala/model/exported/places.h"

namespace gala {
namespace {

using exported::Archive;
using exported::Graph;
using exported::GraphInput;

const ExportedOptions& checked(const ExportedOptions& options) {
  if (options.path.empty()) {
    fail<ConfigError>("model exported: path must name a .pt2 file (exported:path=net.pt2)");
  }
  return options;
}

ExportedOptions with_classes(ExportedOptions options, std::int64_t classes) {
  if (options.classes != 0 && options.classes != classes) {
    fail<ConfigError>("model exported: {} has {} classes, not {}", options.path, classes,
                      options.classes);
  }
  options.classes = classes;
  return options;
}

/// ImageNet's, in the size that the export fixes.
Preprocessing default_preprocessing(const Graph& graph) {
  Preprocessing preprocessing = Preprocessing::imagenet();
  if (graph.height > 0) preprocessing.size = graph.height;
  return preprocessing;
}

at::Tensor float_tensor(const Archive& archive, const GraphInput& input) {
  at::Tensor value = archive.tensor(input.name);
  if (value.scalar_type() != at::kFloat) {
    archive.refuse(fmt::format("\"{}\" is {}, and float32 is needed: export model.float()",
                               input.name, c10::toString(value.scalar_type())));
  }
  if (!at::isfinite(value).all().item<bool>()) {
    archive.refuse(fmt::format("\"{}\" holds values that are not finite", input.name));
  }
  return value;
}

Parameter fixed_parameter(std::int64_t channels, double value) {
  Parameter parameter;
  parameter.value = at::full({channels}, value, at::kFloat);
  return parameter;
}

}  // namespace

ExportedModel::ExportedModel(const Options& options)
    : ExportedModel(options, Archive(checked(options).path)) {}

ExportedModel::ExportedModel(const Options& options, const Archive& archive)
    : ExportedModel(options, archive, exported::read_graph(archive)) {}

ExportedModel::ExportedModel(const Options& options, const Archive& archive, Graph graph)
    : Model(options_to_spec("exported", with_classes(options, graph.classes)), graph.classes,
            default_preprocessing(graph)),
      graph_(std::move(graph)) {
  if (graph_.height != graph_.width && graph_.height > 0 && graph_.width > 0) {
    archive.refuse(
        fmt::format("takes images of {} x {} alone, and pictures are made square: export it "
                    "for square ones",
                    graph_.height, graph_.width));
  }
  take_tensors(archive);
  make_norms();
  take_metadata(archive);
  try_out(archive);
}

void ExportedModel::take_tensors(const Archive& archive) {
  for (const std::size_t number : graph_.parameters) {
    const GraphInput& input = graph_.inputs[number];
    const bool in_head = std::find(graph_.head_inputs.begin(), graph_.head_inputs.end(), number) !=
                         graph_.head_inputs.end();
    parameters_.push_back({input.name, exported::module_of_parameter(input.name), input.kind,
                           in_head ? 0 : 1, float_tensor(archive, input)});
    parameter_places_.emplace_back(input.place, &parameters_.back());
  }
  exported::assign_blocks(parameters_);
  for (const GraphInput& input : graph_.inputs) {
    if (input.role == GraphInput::Role::kParameter || input.role == GraphInput::Role::kImages)
      continue;
    if (input.statistic) {
      buffers_.push_back({input.name, float_tensor(archive, input)});
      buffer_places_.emplace_back(input.place, &buffers_.back());
      continue;
    }
    passive_.insert(input.name);
    if (input.used) constants_.emplace_back(input.place, archive.tensor(input.name));
  }
  passive_.insert(graph_.unused.begin(), graph_.unused.end());
}

void ExportedModel::make_norms() {
  std::map<exported::Place, Parameter*> parameters(parameter_places_.begin(),
                                                   parameter_places_.end());
  std::map<exported::Place, Buffer*> buffers(buffer_places_.begin(), buffer_places_.end());
  const auto parameter_or = [&](const std::optional<std::size_t>& number, std::int64_t channels,
                                double otherwise) {
    if (number) {
      const auto found = parameters.find(graph_.inputs[*number].place);
      if (found != parameters.end()) return found->second;
    }
    fixed_.push_back(fixed_parameter(channels, otherwise));
    return &fixed_.back();
  };
  for (const exported::GraphNorm& norm : graph_.norms) {
    BatchNorm layer;
    layer.epsilon = norm.epsilon;
    layer.running_mean = buffers.at(graph_.inputs[norm.running_mean].place);
    layer.running_var = buffers.at(graph_.inputs[norm.running_var].place);
    const std::int64_t channels = layer.running_mean->value.numel();
    layer.scale = parameter_or(norm.scale, channels, 1);
    layer.shift = parameter_or(norm.shift, channels, 0);
    norms_.push_back(layer);
  }
}

void ExportedModel::take_metadata(const Archive& archive) {
  const nlohmann::json& metadata = archive.metadata();
  if (const auto found = metadata.find("preprocessing"); found != metadata.end()) {
    try {
      set_preprocessing(Preprocessing::from_json(*found));
    } catch (const ConfigError& error) {
      archive.refuse(fmt::format("its gala.json: {}", error.what()));
    }
    if (graph_.height > 0 && preprocessing().size != graph_.height) {
      archive.refuse(
          fmt::format("its gala.json prepares images of {0} x {0}, and it takes {1} x {1} "
                      "alone",
                      preprocessing().size, graph_.height));
    }
    says_preprocessing_ = true;
  }
  if (const auto found = metadata.find("classes"); found != metadata.end()) {
    if (!found->is_array() || !std::all_of(found->begin(), found->end(),
                                           [](const auto& item) { return item.is_string(); })) {
      archive.refuse("its gala.json: the class names are not a list of texts");
    }
    if (static_cast<std::int64_t>(found->size()) != classes()) {
      archive.refuse(
          fmt::format("its gala.json names {} classes, and it has {}", found->size(), classes()));
    }
    set_class_names(found->get<std::vector<std::string>>());
  }
}

/// A file that LibTorch's operators do not accept is found out before anything is adapted.
void ExportedModel::try_out(const Archive& archive) {
  const at::NoGradGuard no_gradients;
  const std::int64_t size = preprocessing().size;
  // One, two and some powers of two are often special; of large images one takes memory enough.
  const std::int64_t wanted = size > 1024 ? 1 : 3;
  const std::int64_t images =
      graph_.most_images > 0 ? std::min(wanted, graph_.most_images) : wanted;
  Output output;
  try {
    output = run(at::zeros({images, 3, size, size}), {NormMode{}, false});
  } catch (const std::exception& problem) {
    archive.refuse(fmt::format("the network cannot answer: {}", first_line(in_words(problem))));
  }
  if (output.logits.sizes() != at::IntArrayRef{images, classes()} || output.features.dim() != 2 ||
      output.features.size(0) != images) {
    archive.refuse(fmt::format("for {} images [{}] came out, and not [{}, {}]", images,
                               fmt::join(output.logits.sizes(), ", "), images, classes()));
  }
}

void ExportedModel::check_size(const at::Tensor& images) const {
  check_images(images);
  const auto fits = [](std::int64_t wanted, std::int64_t size) {
    return wanted == 0 || wanted == size;
  };
  if (!fits(graph_.height, images.size(2)) || !fits(graph_.width, images.size(3))) {
    fail<ConfigError>("model {} was exported for images of {} x {}, and these have {} x {}",
                      spec().to_string(), graph_.height, graph_.width, images.size(2),
                      images.size(3));
  }
  if (graph_.most_images > 0 && images.size(0) > graph_.most_images) {
    fail<ConfigError>("model {} was exported for batches of at most {} images, and this one has {}",
                      spec().to_string(), graph_.most_images, images.size(0));
  }
}

Output ExportedModel::forward(const at::Tensor& images, bool update_statistics) {
  check_size(images);
  return run(images, norm_pass(images, update_statistics));
}

Output ExportedModel::forward_counted(const at::Tensor& images, const at::Tensor& counted) {
  check_size(images);
  return run(images, norm_pass(images, /*update_statistics=*/false, counted));
}

Output ExportedModel::run(const at::Tensor& images, const NormPass& pass) {
  const Uncaptured uncaptured;
  std::vector<c10::IValue> values(graph_.places);
  for (const auto& [place, parameter] : parameter_places_) values[place] = parameter->value;
  for (const auto& [place, buffer] : buffer_places_) values[place] = buffer->value;
  for (const auto& [place, constant] : constants_) values[place] = constant;
  const at::Tensor input = images.contiguous(memory_format());
  values[graph_.images] = graph_.writes_images ? input.clone() : input;
  const exported::Surroundings surroundings{device(), pass, images.size(0), norms_};
  const std::span<const exported::Node> nodes(graph_.nodes);
  {
    const PrecisionScope scope(precision(), device().type());
    exported::run(nodes.first(graph_.head), values, surroundings);
  }
  // The head, and what follows it, is float32 at any precision.
  if (precision() == Precision::kBf16) {
    for (c10::IValue& value : values) {
      if (value.isTensor() && value.toTensor().scalar_type() == at::kBFloat16) {
        value = value.toTensor().to(at::kFloat);
      }
    }
  }
  Output output;
  output.features = values[graph_.features].toTensor();
  exported::run(nodes.subspan(graph_.head), values, surroundings);
  output.logits = values[graph_.logits].toTensor();
  output.moved = moved_in(pass);
  return output;
}

void ExportedModel::to(at::Device device) {
  Model::to(device);
  for (auto& [place, constant] : constants_) constant = constant.to(device);
  for (Parameter& parameter : fixed_) parameter.value = parameter.value.to(device);
}

std::vector<std::string> ExportedModel::notes() const {
  const std::string& path = *spec().find("path");
  std::vector<std::string> notes;
  // A weight file may have said it since.
  if (!says_preprocessing_ && preprocessing() == default_preprocessing(graph_)) {
    notes.push_back(
        fmt::format("{} does not say how its images are prepared: using ImageNet's numbers, {}",
                    path, preprocessing().to_json().dump()));
  }
  if (graph_.gives_shares) {
    notes.push_back(fmt::format(
        "{} ends in a softmax, and its answers are taken for logits: export it without", path));
  }
  return notes;
}

bool ExportedModel::is_passive(std::string_view name) const {
  return passive_.contains(name) || Model::is_passive(name);
}

}  // namespace gala
