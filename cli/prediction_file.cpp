#include "cli/prediction_file.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "cli/text.h"

namespace gala {

PredictionFile::PredictionFile(const DataSource& source, const Stream& stream)
    : stream_(stream),
      with_labels_(source.classes() > 0),
      with_files_(std::any_of(source.domains.begin(), source.domains.end(),
                              [](const Domain& domain) { return domain.data->in_files(); })) {}

void PredictionFile::begin() {
  if (!lines_.is_open() || !lines_.empty()) return;
  lines_.write(fmt::format("index,prediction,confidence{}{}", with_labels_ ? ",label" : "",
                           with_files_ ? ",file" : ""));
}

void PredictionFile::write(const Batch& batch, const Answer& answer) {
  if (!lines_.is_open()) return;
  const at::Tensor best =
      std::get<0>(at::softmax(answer.logits, 1).max(1)).to(at::kCPU).contiguous();
  const float* confidence = best.const_data_ptr<float>();
  for (std::size_t i = 0; i < answer.predictions.size(); ++i) {
    const std::int64_t prediction = answer.predictions[i];
    // No finite answer: -1, and sure of nothing.
    const float sure = prediction == kNoClass ? 0.0f : confidence[i];
    std::string line = fmt::format("{},{},{:.6g}", batch.positions[i], prediction, sure);
    if (with_labels_) line += fmt::format(",{}", batch.labels[i]);
    if (with_files_) line.append(",").append(csv_field(stream_.item_name(batch.positions[i])));
    lines_.write(line);
  }
}

}  // namespace gala
