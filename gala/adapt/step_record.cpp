#include "gala/adapt/step_record.h"

#include <algorithm>

namespace gala {

StepTimes& StepTimes::operator+=(const StepTimes& other) {
  copy += other.copy;
  forward += other.forward;
  backward += other.backward;
  measure += other.measure;
  select += other.select;
  apply += other.apply;
  return *this;
}

std::vector<std::size_t> StepRecord::selected() const {
  std::vector<std::size_t> indices;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    if (layers[l].weight != 0) indices.push_back(l);
  }
  return indices;
}

double StepRecord::gap() const {
  if (layers.size() < 2) return 0;
  double first = -2, second = -2;
  for (const LayerRecord& layer : layers) {
    second = std::max(second, std::min(first, layer.cosine));
    first = std::max(first, layer.cosine);
  }
  return first - second;
}

nlohmann::ordered_json to_json(const StepRecord& record, const LayerPartition& layers,
                               bool with_time) {
  using Json = nlohmann::ordered_json;
  Json json;
  json["step"] = record.step;
  json["window_step"] = record.window_step;
  json["batch"] = record.batch;
  json["loss"] = record.loss;  // JSON has no NaN: the library writes null
  json["confident"] = record.confident;
  json["gradient_norm"] = record.gradient_norm;
  if (record.refused) json["refused"] = true;
  json["layers"] = Json::array();
  for (std::size_t l = 0; l < record.layers.size(); ++l) {
    const LayerRecord& layer = record.layers[l];
    json["layers"].push_back({{"name", layers[l].name},
                              {"cosine", layer.cosine},
                              {"update_norm", layer.update_norm},
                              {"shift_norm", layer.shift_norm},
                              {"weight", layer.weight}});
  }
  json["selected"] = Json::array();
  for (const std::size_t l : record.selected()) json["selected"].push_back(layers[l].name);
  json["gap"] = record.gap();
  if (with_time) json["milliseconds"] = record.times.total();
  return json;
}

}  // namespace gala
