#include "gala/train/evaluate.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "gala/base/interrupt.h"

namespace gala {

DeviceBatch DeviceBatch::of(const Batch& batch, at::Device device) {
  const bool on_gpu = device.is_cuda();
  at::Tensor labels = at::empty({batch.size()}, at::TensorOptions(at::kLong).pinned_memory(on_gpu));
  std::copy(batch.labels.begin(), batch.labels.end(), labels.mutable_data_ptr<std::int64_t>());
  if (!on_gpu) return {batch.images, labels};
  return {batch.images.to(device, /*non_blocking=*/true).contiguous(at::MemoryFormat::ChannelsLast),
          labels.to(device, /*non_blocking=*/true)};
}

Evaluation evaluate(Model& model, const Stream& stream, int loader_threads) {
  const c10::NoGradGuard no_grad;
  const NormMode mode = model.norm_mode();
  model.set_norm_mode({.kind = NormKind::kSource});
  const at::Device device = model.device();
  LoaderOptions options;
  options.batch_size = 256;
  options.threads = loader_threads;
  options.pinned = device.is_cuda();
  Loader loader(stream, model.preprocessing(), options);
  Evaluation result;
  at::Tensor correct = at::zeros({}, at::TensorOptions(at::kLong).device(device));
  while (const std::optional<Batch> batch = loader.next()) {
    if (interrupted()) break;
    const DeviceBatch given = DeviceBatch::of(*batch, device);
    correct += (model.forward(given.images, false).logits.argmax(1) == given.labels).sum();
    result.images += batch->size();
  }
  model.set_norm_mode(mode);
  if (interrupted()) throw Interrupted("stopped while evaluating");
  result.correct = correct.item<std::int64_t>();
  return result;
}

}  // namespace gala
