#include "gala/train/evaluate.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "gala/adapt/answer_loop.h"
#include "gala/base/interrupt.h"

namespace gala {

std::int64_t Evaluation::images() const {
  std::int64_t sum = 0;
  for (const Part& part : parts) sum += part.images;
  return sum;
}

std::int64_t Evaluation::correct() const {
  std::int64_t sum = 0;
  for (const Part& part : parts) sum += part.correct;
  return sum;
}

double Evaluation::accuracy() const {
  return Part{"", images(), correct()}.accuracy();
}

double Evaluation::mean_accuracy() const {
  double sum = 0;
  for (const Part& part : parts) sum += part.accuracy();
  return parts.empty() ? 0 : sum / static_cast<double>(parts.size());
}

at::Tensor labels_of(const Batch& batch) {
  const at::Device device = batch.images.device();
  const bool on_gpu = device.is_cuda();
  const at::Tensor labels =
      at::empty({batch.size()}, at::TensorOptions(at::kLong).pinned_memory(on_gpu));
  std::copy(batch.labels.begin(), batch.labels.end(), labels.mutable_data_ptr<std::int64_t>());
  return on_gpu ? labels.to(device, /*non_blocking=*/true) : labels;
}

Evaluation evaluate(Model& model, const Stream& stream, int loader_threads) {
  const NormMode mode = model.norm_mode();
  const Precision precision = model.precision();
  model.set_norm_mode({.kind = NormKind::kSource});
  model.set_precision(Precision::kFloat32);
  LoaderOptions options;
  options.batch_size = 256;
  options.threads = loader_threads;
  options.device = model.device();
  Loader loader(stream, model.preprocessing(), options);
  std::vector<Tally> tallies(stream.domains.size());
  const auto take = [&](const Answered& answered) {
    tally_by_domain(answered.batch, answered.answer.predictions, tallies);
    return !interrupted();
  };
  for_each_answer([&] { return loader.next(); }, model, take);
  model.set_norm_mode(mode);
  model.set_precision(precision);
  if (interrupted()) throw Interrupted("stopped while evaluating");
  Evaluation result;
  for (std::size_t d = 0; d < tallies.size(); ++d) {
    result.parts.push_back({stream.domains[d].name, tallies[d].images, tallies[d].right});
  }
  return result;
}

}  // namespace gala
