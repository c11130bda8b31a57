#include "gala/method/teacher.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <utility>

#include "gala/method/ranges.h"
#include "gala/tensor/torch_workspace.h"

namespace gala {
namespace {

/// Other parameters and statistics in the slots of a network while it lives, then the student's again.
class InSlots {
 public:
  InSlots(const Teacher::Site& site, const at::Tensor& values,
          const std::vector<at::Tensor>& statistics)
      : site_(site), statistics_(statistics) {
    for (std::size_t i = 0; i < site.slots.size(); ++i) {
      site.slots[i]->value = site.parameters.view(values, i);
    }
    exchange_statistics();
  }
  ~InSlots() {
    for (std::size_t i = 0; i < site_.slots.size(); ++i) {
      site_.slots[i]->value = site_.parameters.leaf(i);
    }
    exchange_statistics();
  }
  InSlots(const InSlots&) = delete;
  InSlots& operator=(const InSlots&) = delete;

 private:
  void exchange_statistics() {
    if (statistics_.empty()) return;
    const std::vector<Statistic> places = site_.model.statistics();
    for (std::size_t i = 0; i < statistics_.size(); ++i) {
      std::swap(*places[i].value, statistics_[i]);
    }
  }

  const Teacher::Site& site_;
  std::vector<at::Tensor> statistics_;  ///< those that are not in the slots
};

}  // namespace

void SourceTeacher::attach(const Site& site) {
  site_ = std::make_unique<Site>(site);
  source_ = site.parameters.values().clone();
  if (!site.model.norm_mode().keeps_statistics()) return;
  for (const Statistic& each : site.model.statistics()) {
    statistics_.push_back(each.value->clone());
    source_statistics_.push_back(each.value->clone());
  }
}

Output SourceTeacher::answer(const at::Tensor& images, bool adapting) {
  return answer_with(source_, images, adapting);
}

Output SourceTeacher::answer_with(const at::Tensor& values, const at::Tensor& images,
                                  bool follow) const {
  const c10::NoGradGuard no_grad;
  const InSlots in_slots(*site_, values, statistics_);
  return site_->model.forward(images, /*update_statistics=*/follow && !statistics_.empty());
}

void SourceTeacher::reset() {
  const c10::NoGradGuard no_grad;
  for (std::size_t i = 0; i < statistics_.size(); ++i) statistics_[i].copy_(source_statistics_[i]);
}

void SourceTeacher::remember(StateArchive& archive) {
  if (statistics_.empty()) return;
  const std::vector<Statistic> places = site_->model.statistics();
  for (std::size_t i = 0; i < statistics_.size(); ++i) {
    archive.tensor(name_ + "_statistics/" + places[i].name, statistics_[i]);
  }
}

MeanTeacher::MeanTeacher(const Options& options) : options_(options) {
  check_ranges(method_ranges(), "teacher mean", options);
}

void MeanTeacher::attach(const Site& site) {
  SourceTeacher::attach(site);
  values_ = source_.clone();
}

at::Tensor MeanTeacher::choice(const at::Tensor& images) {
  const c10::NoGradGuard no_grad;
  const at::Tensor source = answer_with(source_, images, /*follow=*/false).logits;
  const at::Tensor sure = at::softmax(source, 1).amax(1).mean();
  return sure.to(at::kDouble).lt(options_.below).to(at::kLong);
}

Output MeanTeacher::answer(const at::Tensor& images, bool adapting) {
  if (adapting && options_.views > 0) {
    return answer_by(images, choice(images).item<std::int64_t>() != 0);
  }
  return answer_with(values_, images, /*follow=*/adapting);
}

Output MeanTeacher::answer_by(const at::Tensor& images, bool looking) {
  const c10::NoGradGuard no_grad;
  if (!looking) return answer_with(values_, images, /*follow=*/true);
  Output mean;
  for (int view = 0; view < options_.views; ++view) {
    const Output one = answer_with(values_, site_->view->look(images, view), /*follow=*/view == 0);
    mean.logits = mean.logits.defined() ? mean.logits.add_(one.logits) : one.logits.clone();
    mean.features =
        mean.features.defined() ? mean.features.add_(one.features) : one.features.clone();
  }
  mean.logits.div_(static_cast<double>(options_.views));
  mean.features.div_(static_cast<double>(options_.views));
  return mean;
}

void MeanTeacher::follow() {
  const c10::NoGradGuard no_grad;
  if (!site_->drift.defined()) {
    values_.mul_(options_.keep).add_(site_->parameters.values(), 1 - options_.keep);
    return;
  }
  const at::Tensor share = (1 - site_->drift) * (1 - options_.keep);
  values_.add_((site_->parameters.values() - values_).mul_(share));
}

void MeanTeacher::reset() {
  SourceTeacher::reset();
  const c10::NoGradGuard no_grad;
  values_.copy_(source_);
}

void MeanTeacher::remember(StateArchive& archive) {
  SourceTeacher::remember(archive);
  archive.buffer("teacher/", hold(values_));
}

}  // namespace gala
