#include "gala/train/evaluate.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "gala/adapt/answer_loop.h"
#include "gala/base/interrupt.h"
#include "gala/train/shard.h"

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

namespace {

constexpr std::int64_t kBatch = 256;

/// Sums the counts of all processes; true where any of them was asked to stop.
bool sum_up(std::vector<Tally>& tallies, ProcessGroup& processes) {
  const auto count = static_cast<std::int64_t>(tallies.size());
  at::Tensor sums = at::zeros({2 * count + 1}, at::kLong);
  auto* sum = sums.mutable_data_ptr<std::int64_t>();
  for (std::int64_t d = 0; d < count; ++d) {
    sum[2 * d] = tallies[static_cast<std::size_t>(d)].images;
    sum[2 * d + 1] = tallies[static_cast<std::size_t>(d)].right;
  }
  sum[2 * count] = interrupted();
  processes.sum(sums);
  for (std::int64_t d = 0; d < count; ++d) {
    tallies[static_cast<std::size_t>(d)].images = sum[2 * d];
    tallies[static_cast<std::size_t>(d)].right = sum[2 * d + 1];
  }
  return sum[2 * count] > 0;
}

}  // namespace

Evaluation evaluate(Model& model, const Stream& stream, int loader_threads,
                    ProcessGroup* processes) {
  const NormMode mode = model.norm_mode();
  const Precision precision = model.precision();
  model.set_norm_mode({.kind = NormKind::kSource});
  model.set_precision(Precision::kFloat32);
  LoaderOptions options;
  options.batch_size = kBatch;
  options.threads = loader_threads;
  options.device = model.device();
  std::optional<Stream> share;
  if (processes) share = batches_of(stream, kBatch, *processes);
  const Stream& own = share ? *share : stream;
  std::vector<Tally> tallies(stream.domains.size());
  const auto take = [&](const Answered& answered) {
    tally_by_domain(answered.batch, answered.answer.predictions, tallies);
    return !interrupted();
  };
  if (own.size() > 0) {
    Loader loader(own, model.preprocessing(), options);
    for_each_answer([&] { return loader.next(); }, model, take);
  }
  model.set_norm_mode(mode);
  model.set_precision(precision);
  const bool stopped = processes ? sum_up(tallies, *processes) : interrupted();
  if (stopped) throw Interrupted("stopped while evaluating");
  Evaluation result;
  for (std::size_t d = 0; d < tallies.size(); ++d) {
    result.parts.push_back({stream.domains[d].name, tallies[d].images, tallies[d].right});
  }
  return result;
}

}  // namespace gala
