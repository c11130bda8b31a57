#include <ATen/ATen.h>

#include <algorithm>

#include "gala/adapt/adapter.h"

// Who answers where the adapted model does not.

namespace gala {
namespace {

using Numbers = std::vector<std::int64_t>;

at::Tensor index_of(const Numbers& numbers, at::Device device) {
  return at::tensor(numbers, at::kLong).to(device);
}

at::Tensor rows_of(const at::Tensor& tensor, const Numbers& numbers) {
  return tensor.index_select(0, index_of(numbers, tensor.device()));
}

Numbers without_class(const Numbers& predictions) {
  Numbers numbers;
  for (std::int64_t i = 0; i < std::ssize(predictions); ++i) {
    if (predictions[static_cast<std::size_t>(i)] == kNoClass) numbers.push_back(i);
  }
  return numbers;
}

/// 0 .. count - 1 without those left out, which are in order.
Numbers all_but(const Numbers& left_out, std::int64_t count) {
  Numbers numbers;
  for (std::int64_t i = 0; i < count; ++i) {
    if (!std::binary_search(left_out.begin(), left_out.end(), i)) numbers.push_back(i);
  }
  return numbers;
}

}  // namespace

/// Row k of `logits` is about image numbers[k]: taken where it is finite and the image has no answer
/// yet. Returns the images it answered.
std::vector<std::int64_t> Adapter::fill_in(Answer& answer, const at::Tensor& logits,
                                           const std::vector<std::int64_t>& numbers) {
  const Numbers classes = look_at_rows(logits.to(at::kCPU)).predictions;
  Numbers rows, images;
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    std::int64_t& prediction = answer.predictions[static_cast<std::size_t>(numbers[k])];
    if (classes[k] == kNoClass || prediction != kNoClass) continue;
    prediction = classes[k];
    rows.push_back(static_cast<std::int64_t>(k));
    images.push_back(numbers[k]);
  }
  if (rows.empty()) return images;
  answer.logits = answer.logits.index_copy(0, index_of(images, answer.logits.device()),
                                           rows_of(logits, rows).to(answer.logits.scalar_type()));
  return images;
}

/// Images without a finite answer are asked again. With the source's parameters and statistics an
/// image is answered by itself, so those that have no finite answer there are broken.
void Adapter::answer_again(Answer& answer, const at::Tensor& images) {
  const PassRunner::Apart apart;
  const Numbers asked = without_class(answer.predictions);
  const at::Tensor source = answer_from_source(rows_of(images, asked));
  const Numbers rows = without_class(look_at_rows(source.to(at::kCPU)).predictions);
  Numbers broken;
  for (const std::int64_t row : rows) broken.push_back(asked[static_cast<std::size_t>(row)]);
  if (!broken.empty() && broken.size() < asked.size()) {
    // The batch's statistics may have spread what is broken: once more, without it.
    const Numbers sound = all_but(broken, images.size(0));
    const at::Tensor logits =
        model_.forward(rows_of(images, sound), /*update_statistics=*/false).logits;
    fill_in(answer, logits, sound);
  }
  answer.from_source = fill_in(answer, source, asked);
  answer.unanswered = without_class(answer.predictions);
}

void Adapter::put_in_shadow(Answer& answer, const at::Tensor& images) {
  answer.adapted = std::move(answer.logits);
  answer.logits = answer_from_source(images);
  answer.predictions = look_at_rows(answer.logits.to(at::kCPU)).predictions;
  answer.from_source.clear();
  answer.unanswered = without_class(answer.predictions);
}

/// The source's parameters answer; nothing moves.
at::Tensor Adapter::answer_from_source(const at::Tensor& images, Witness witness) {
  const PassRunner::Apart apart;
  // Also where the device has no memory for the answer: what was adapted must not be lost.
  struct Back {
    Adapter& adapter;
    Snapshot adapted = adapter.take_snapshot();
    NormMode mode = adapter.model_.norm_mode();
    void put() {
      adapter.model_.set_norm_mode(mode);
      adapter.restore(adapted);
    }
  };
  Back back{*this};
  at::Tensor logits;
  try {
    if (witness == Witness::kPresent) {
      const c10::NoGradGuard no_grad;
      arena_->values().copy_(source_.values);
    } else {
      restore(source_);
      model_.set_norm_mode(
          {.kind = witness == Witness::kBatch ? NormKind::kBatch : NormKind::kSource});
    }
    logits = model_.forward(images, /*update_statistics=*/false).logits;
  } catch (...) {
    back.put();
    throw;
  }
  back.put();
  return logits;
}

}  // namespace gala
