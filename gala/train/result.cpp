#include "gala/train/result.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "gala/model/weights.h"

namespace gala {
namespace {

at::ScalarType scalar_type(WeightType type) {
  return type == WeightType::kFloat16 ? at::kHalf : at::kFloat;
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
  if (!plan.parameters.empty()) json["parameters"] = plan.parameters;
  if (kept_step != steps) json["kept_step"] = kept_step;
  if (processes > 1) json["processes"] = processes;
  if (!history.empty()) json["history"] = history;
  if (evaluation) {
    nlohmann::json domains = nlohmann::json::array();
    for (const Evaluation::Part& part : evaluation->parts) {
      domains.push_back(
          {{"domain", part.domain}, {"images", part.images}, {"correct", part.correct}});
    }
    json["evaluation"] = {{"data", evaluation_data},
                          {"images", evaluation->images()},
                          {"correct", evaluation->correct()},
                          {"accuracy", evaluation->accuracy()},
                          {"mean_accuracy", evaluation->mean_accuracy()},
                          {"domains", domains}};
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
  const nlohmann::json metadata = read_weight_metadata(path);
  const auto training = metadata.find("training");
  if (training == metadata.end() || !training->is_object()) return std::nullopt;
  if (training->value("settings", nlohmann::json()) != settings) return std::nullopt;
  return *training;
}

}  // namespace gala
