#include "gala/method/balanced_store.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>

#include "gala/base/error.h"
#include "gala/method/ranges.h"

namespace gala {

BalancedStore::BalancedStore(const Options& options) : options_(options) {
  check_ranges(method_ranges(), "store balanced", options);
}

void BalancedStore::attach(at::Device device, std::int64_t classes) {
  device_ = device;
  classes_.resize(static_cast<std::size_t>(classes));
  ages_ = at::zeros({options_.size}, at::TensorOptions(at::kFloat).device(device));
}

void BalancedStore::reset() {
  for (auto& items : classes_) items.clear();
  free_.clear();
  images_.reset();
  in_step_ = seen_ = 0;
}

std::int64_t BalancedStore::count() const {
  std::int64_t sum = 0;
  for (const auto& items : classes_) sum += std::ssize(items);
  return sum;
}

at::Tensor BalancedStore::ages() const {
  return ages_.narrow(0, 0, in_step_);
}

void BalancedStore::make_places(at::IntArrayRef image_sizes) {
  if (images_.defined() && images_.sizes().slice(1) == image_sizes) return;
  for (auto& items : classes_) items.clear();
  std::vector<std::int64_t> sizes{options_.size};
  sizes.insert(sizes.end(), image_sizes.begin(), image_sizes.end());
  images_ = at::zeros(sizes, ages_.options());
  free_.clear();
  for (std::int64_t place = options_.size; place-- > 0;) free_.push_back(place);
}

void BalancedStore::take(const at::Tensor& images, const at::Tensor& logits, const Step& step) {
  const c10::NoGradGuard no_grad;
  const at::Tensor p = at::softmax(logits.to(at::kFloat), 1);
  const at::Tensor uncertainty = -(p * (p + 1e-6).log()).sum(1);  // as published
  const at::Tensor labels = logits.argmax(1);
  const float* unsure = uncertainty.const_data_ptr<float>();
  const std::int64_t* label = labels.const_data_ptr<std::int64_t>();
  Arrivals arrivals;
  for (std::int64_t i = 0; i < images.size(0); ++i) {
    if (std::isfinite(unsure[i])) {
      make_places(images.sizes().slice(1));
      const auto place = add(static_cast<std::size_t>(label[i]), static_cast<double>(unsure[i]));
      if (place) arrivals[*place] = i;
    }
    ++seen_;
    if (options_.every > 0 && seen_ % options_.every == 0) {
      put(images, arrivals);
      make_step(step);
    }
  }
  put(images, arrivals);
  if (options_.every == 0) make_step(step);
}

/// Takes in an image that is still to be put there: its place, or nothing where it stays out.
std::optional<std::int64_t> BalancedStore::add(std::size_t label, double uncertainty) {
  std::optional<std::int64_t> place;
  if (make_room(label, score(uncertainty, 0))) {
    place = free_.back();
    free_.pop_back();
    classes_[label].push_back({*place, uncertainty, 0});
  }
  for (auto& items : classes_) {
    for (Item& item : items) ++item.age;
  }
  return place;
}

/// All at once: image by image would be a small copy on the device for each.
void BalancedStore::put(const at::Tensor& images, Arrivals& arrivals) {
  if (arrivals.empty()) return;
  std::vector<std::int64_t> places, rows;
  for (const auto& [place, row] : arrivals) {
    places.push_back(place);
    rows.push_back(row);
  }
  const at::Tensor arrived = images.index_select(0, at::tensor(rows).to(images.device()));
  images_.index_copy_(0, at::tensor(places).to(device_), arrived.to(images_.options()));
  arrivals.clear();
}

double BalancedStore::score(double uncertainty, std::int64_t age) const {
  const double share = static_cast<double>(age) / static_cast<double>(options_.size);
  return 1 / (1 + std::exp(-share)) + uncertainty / std::log(static_cast<double>(classes_.size()));
}

/// Whether there is a place for a new image, also by sending one away.
bool BalancedStore::make_room(std::size_t label, double score) {
  const double share = static_cast<double>(options_.size) / static_cast<double>(classes_.size());
  if (static_cast<double>(classes_[label].size()) >= share) return remove_worst({label}, score);
  if (count() < options_.size) return true;
  std::size_t most = 0;
  for (const auto& items : classes_) most = std::max(most, items.size());
  std::vector<std::size_t> largest;
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    if (classes_[c].size() == most) largest.push_back(c);
  }
  return remove_worst(largest, score);
}

/// Of equals the last goes.
bool BalancedStore::remove_worst(const std::vector<std::size_t>& classes, double new_score) {
  std::size_t worst_class = 0, worst = 0;
  double highest = -1;
  for (const std::size_t c : classes) {
    for (std::size_t i = 0; i < classes_[c].size(); ++i) {
      const double each = score(classes_[c][i].uncertainty, classes_[c][i].age);
      if (each < highest) continue;
      highest = each;
      worst_class = c;
      worst = i;
    }
  }
  if (!(highest > new_score)) return false;
  auto& items = classes_[worst_class];
  free_.push_back(items[worst].place);
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(worst));
  return true;
}

void BalancedStore::make_step(const Step& step) {
  std::vector<std::int64_t> places;
  std::vector<float> ages;
  for (const auto& items : classes_) {
    for (const Item& item : items) {
      places.push_back(item.place);
      ages.push_back(
          static_cast<float>(static_cast<double>(item.age) / static_cast<double>(options_.size)));
    }
  }
  if (places.empty()) return;
  in_step_ = std::ssize(places);
  ages_.narrow(0, 0, in_step_).copy_(at::tensor(ages));
  // A copy: the step may empty the store.
  const at::Tensor images = images_.index_select(0, at::tensor(places).to(device_));
  const c10::AutoGradMode as_outside(true);
  step(images);
}

void BalancedStore::remember(StateArchive& archive) {
  // In the order of a step; where an image lies does not matter.
  std::vector<std::int64_t> shape, labels, ages;
  std::vector<double> uncertainties;
  at::Tensor kept;
  if (!archive.loads() && images_.defined()) {
    std::vector<std::int64_t> places;
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      for (const Item& item : classes_[c]) {
        labels.push_back(static_cast<std::int64_t>(c));
        places.push_back(item.place);
        ages.push_back(item.age);
        uncertainties.push_back(item.uncertainty);
      }
    }
    kept = images_.index_select(0, at::tensor(places, at::kLong).to(device_));
    shape = kept.sizes().vec();
  }
  archive.value("store_seen", seen_);
  archive.value("store_shape", shape);
  archive.value("store_labels", labels);
  archive.value("store_ages", ages);
  archive.value("store_uncertainties", uncertainties);
  if (!archive.loads()) {
    if (!shape.empty()) archive.tensor("store_images", kept);
    return;
  }
  const std::int64_t seen = seen_;
  reset();
  seen_ = seen;
  if (shape.empty()) return;
  const auto size = labels.size();
  const bool fits = shape.size() == 4 && shape[0] == std::ssize(labels) &&
                    shape[0] <= options_.size && ages.size() == size &&
                    uncertainties.size() == size;
  if (!fits) fail("the images that the state keeps are not as many as their labels");
  kept = at::zeros(shape, ages_.options());
  archive.tensor("store_images", kept);
  make_places(kept.sizes().slice(1));
  Arrivals arrivals;
  for (std::size_t i = 0; i < size; ++i) {
    const auto label = static_cast<std::size_t>(labels[i]);
    if (label >= classes_.size()) fail("the state keeps an image of class {}", labels[i]);
    const std::int64_t place = free_.back();
    free_.pop_back();
    arrivals[place] = static_cast<std::int64_t>(i);
    classes_[label].push_back({place, uncertainties[i], ages[i]});
  }
  put(kept, arrivals);
}

}  // namespace gala
