#include "gala/adapt/tally.h"

namespace gala {

void Tally::take(std::int64_t prediction, std::int64_t label) {
  ++images;
  if (label < 0) return;
  ++counted;
  right += prediction == label;
}

Tally& Tally::operator+=(const Tally& other) {
  images += other.images;
  counted += other.counted;
  right += other.right;
  return *this;
}

Tally tally_of(const Batch& batch, std::span<const std::int64_t> predictions) {
  Tally tally;
  for (std::size_t i = 0; i < predictions.size(); ++i) tally.take(predictions[i], batch.labels[i]);
  return tally;
}

void tally_by_domain(const Batch& batch, std::span<const std::int64_t> predictions,
                     std::vector<Tally>& domains) {
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    domains[static_cast<std::size_t>(batch.domains[i])].take(predictions[i], batch.labels[i]);
  }
}

}  // namespace gala
