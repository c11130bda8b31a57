#include "cli/model_flags.h"

#include <ATen/Context.h>
#include <fmt/format.h>

#include "gala/base/error.h"
#include "gala/model/layout.h"
#include "gala/model/weights.h"

namespace gala {

at::Device parse_device(const std::string& text) {
  if (text == "cpu") return at::kCPU;
  if (text != "cuda" && !text.starts_with("cuda:")) {
    fail<ConfigError>("--device {}: unknown (expected cpu, cuda or cuda:N)", text);
  }
  if (!at::globalContext().hasCUDA()) {
    fail<ConfigError>(
        "--device {}: no CUDA device can be used here (a LibTorch with CUDA and a GPU "
        "are needed)",
        text);
  }
  std::int64_t index = 0;
  if (text != "cuda" && (!parse_value(std::string_view(text).substr(5), index) || index < 0 ||
                         index >= static_cast<std::int64_t>(at::getNumGPUs()))) {
    fail<ConfigError>("--device {}: there are {} CUDA devices", text,
                      static_cast<std::int64_t>(at::getNumGPUs()));
  }
  return {at::kCUDA, static_cast<at::DeviceIndex>(index)};
}

void ModelFlags::add_to(CLI::App& command) {
  command
      .add_option(
          "--model", model,
          "network, such as resnet18:classes=7 or exported:path=net.pt2; not needed when the "
          "weights name theirs")
      ->type_name("SPEC");
  command
      .add_option("--weights", weights,
                  "safetensors file or PyTorch checkpoint [the model's own, or random ones]")
      ->type_name("FILE");
}

std::unique_ptr<Model> ModelFlags::open(std::vector<std::string>& warnings,
                                        std::int64_t batch_size) const {
  const at::Device target = parse_device(device);
  const NormMode mode = NormMode::parse(norm);
  const auto products = parse_flag<Precision>("--precision", precision);
  const auto lie = parse_flag<Layout>("--layout", layout);
  if (products == Precision::kTf32 && !target.is_cuda()) {
    fail<ConfigError>("--precision tf32 needs --device cuda, not {}", device);
  }
  std::string spec = model;
  if (spec.empty()) {
    if (weights.empty()) fail<ConfigError>("--model or --weights must be given");
    spec = read_weight_metadata(weights).value("model", "");
    if (spec.empty()) {
      fail<ConfigError>("--weights {}: the file does not name its network; give --model", weights);
    }
  }
  std::unique_ptr<Model> network = make_model(Spec::parse(spec), static_cast<std::uint64_t>(seed));
  if (weights.empty() && !network->brings_weights()) {
    warnings.push_back(fmt::format(
        "no --weights: the network starts from a random initialisation (seed {}) and knows nothing",
        seed));
  } else if (!weights.empty()) {
    const LoadedWeights loaded = load_weights(*network, weights);
    if (!loaded.prefix.empty()) {
      warnings.push_back(fmt::format("{}: the prefix \"{}\" is taken off the names of its tensors",
                                     weights, loaded.prefix));
    }
    if (!loaded.preprocessing && !network->brings_weights()) {
      warnings.push_back(
          fmt::format("{} does not say how its images are prepared: using the default of {}, {}",
                      weights, network->spec().name, network->preprocessing().to_json().dump()));
    }
  }
  for (std::string& note : network->notes()) warnings.push_back(std::move(note));
  network->to(target);
  network->set_norm_mode(mode);
  network->set_precision(products);
  if (target.is_cuda()) allow_tf32(products);
  const std::int64_t size = network->preprocessing().size;
  set_layout(*network, lie, {batch_size, 3, size, size});
  return network;
}

}  // namespace gala
