#include "gala/train/evaluate.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <span>

#include "gala/base/interrupt.h"
#include "gala/model/classes.h"

namespace gala {

namespace {

at::Tensor to_device(std::span<const std::int64_t> numbers, at::Device device) {
  const bool on_gpu = device.is_cuda();
  const at::Tensor values = at::empty({static_cast<std::int64_t>(numbers.size())},
                                      at::TensorOptions(at::kLong).pinned_memory(on_gpu));
  std::copy(numbers.begin(), numbers.end(), values.mutable_data_ptr<std::int64_t>());
  return on_gpu ? values.to(device, /*non_blocking=*/true) : values;
}

}  // namespace

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
  return to_device(batch.labels, batch.images.device());
}

Evaluation evaluate(Model& model, const Stream& stream, int loader_threads) {
  const c10::NoGradGuard no_grad;
  const NormMode mode = model.norm_mode();
  const Precision precision = model.precision();
  model.set_norm_mode({.kind = NormKind::kSource});
  model.set_precision(Precision::kFloat32);
  const at::Device device = model.device();
  LoaderOptions options;
  options.batch_size = 256;
  options.threads = loader_threads;
  options.device = device;
  Loader loader(stream, model.preprocessing(), options);
  Evaluation result;
  for (const Domain& domain : stream.domains) result.parts.push_back({domain.name});
  at::Tensor correct = at::zeros({static_cast<std::int64_t>(result.parts.size())},
                                 at::TensorOptions(at::kLong).device(device));
  while (const std::optional<Batch> batch = loader.next()) {
    if (interrupted()) break;
    const at::Tensor hits =
        right_answers(model.forward(batch->images, false).logits, labels_of(*batch));
    std::vector<std::int64_t> domains(batch->domains.begin(), batch->domains.end());
    for (const std::int64_t domain : domains) {
      ++result.parts[static_cast<std::size_t>(domain)].images;
    }
    correct.index_add_(0, to_device(domains, device), hits.to(at::kLong));
  }
  model.set_norm_mode(mode);
  model.set_precision(precision);
  if (interrupted()) throw Interrupted("stopped while evaluating");
  const at::Tensor counts = correct.cpu();
  for (std::size_t d = 0; d < result.parts.size(); ++d) {
    result.parts[d].correct = counts[static_cast<std::int64_t>(d)].item<std::int64_t>();
  }
  return result;
}

}  // namespace gala
