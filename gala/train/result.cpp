#include "gala/train/result.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "gala/model/weights.h"

namespace gala {
namespace {

at::ScalarType scalar_type(WeightType type) {
  return type == WeightType::kFloat16 ? at::kHalf : at::kFloat;
}

/// The spec without the folder, which is this machine's affair.
std::string without_path(const std::string& data) {
  Spec spec = Spec::parse(data);
  std::erase_if(spec.options, [](const auto& option) { return option.first == "path"; });
  return spec.to_string();
}

}  // namespace

void round_weights(Model& model, WeightType type) {
  if (type == WeightType::kFloat32) return;
  const c10::NoGradGuard no_grad;
  const auto round = [&](const std::string& name, at::Tensor& value) {
    const at::Tensor rounded = value.to(scalar_type(type)).to(at::kFloat);
    if (!at::isfinite(rounded).all().item<bool>()) {
      fail("{} holds values that float16 cannot hold: write float32", name);
    }
    value.copy_(rounded);
  };
  for (Parameter& parameter : model.parameters()) round(parameter.name, parameter.value);
  for (Buffer& buffer : model.buffers()) round(buffer.name, buffer.value);
}

nlohmann::json TrainingRecord::to_json() const {
  nlohmann::json json = {
      {"plan", plan.text}, {"seed", plan.train.seed}, {"steps", steps}, {"settings", settings}};
  if (evaluation) {
    json["evaluation"] = {{"data", without_path(plan.data.evaluation)},
                          {"images", evaluation->images},
                          {"correct", evaluation->correct},
                          {"accuracy", evaluation->accuracy()}};
  }
  return json;
}

void save_trained(const Model& model, const TrainingRecord& record,
                  const std::filesystem::path& path) {
  save_weights(
      model, path,
      {.type = scalar_type(record.plan.output.type), .metadata = {{"training", record.to_json()}}});
}

std::optional<nlohmann::json> find_record(const std::filesystem::path& path,
                                          const nlohmann::json& settings) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  const nlohmann::json metadata = read_weights(path).metadata;
  const auto training = metadata.find("training");
  if (training == metadata.end() || !training->is_object()) return std::nullopt;
  if (training->value("settings", nlohmann::json()) != settings) return std::nullopt;
  return *training;
}

}  // namespace gala
