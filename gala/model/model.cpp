#include "gala/model/model.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <utility>
#include <vector>

#include "gala/base/random.h"

namespace gala {
namespace {

bool is_weight(const Parameter& parameter) {
  return parameter.name.ends_with(".weight");
}

/// Inputs that each output of a linear layer sums over, from its weight or its bias (whose weight
/// stands just before it).
std::int64_t linear_fan_in(const std::deque<Parameter>& parameters, std::size_t index) {
  return parameters[is_weight(parameters[index]) ? index : index - 1].value.size(1);
}

/// Fresh values of a parameter, contiguous on the CPU.
at::Tensor draw(const std::deque<Parameter>& parameters, std::size_t index, std::uint64_t seed) {
  const Parameter& parameter = parameters[index];
  at::Tensor values = at::empty(parameter.value.sizes(), at::kFloat);
  float* data = values.mutable_data_ptr<float>();
  const std::int64_t count = values.numel();
  Random random(seed, parameter.name);
  switch (parameter.kind) {
    case ModuleKind::kConvolution: {
      const double fan_out = static_cast<double>(count / values.size(1));
      const double deviation = std::sqrt(2 / fan_out);
      for (std::int64_t i = 0; i < count; ++i) {
        data[i] = static_cast<float>(deviation * random.normal());
      }
      break;
    }
    case ModuleKind::kNorm:
      std::fill_n(data, count, is_weight(parameter) ? 1.0f : 0.0f);
      break;
    case ModuleKind::kLinear: {
      const double bound = 1 / std::sqrt(static_cast<double>(linear_fan_in(parameters, index)));
      for (std::int64_t i = 0; i < count; ++i) {
        data[i] = static_cast<float>(random.uniform(-bound, bound));
      }
      break;
    }
    case ModuleKind::kOther:
      fail("{}: nobody knows how its first values are drawn", parameter.name);
  }
  return values;
}

at::Tensor moved(const at::Tensor& tensor, at::Device device) {
  return tensor.detach().to(device).set_requires_grad(tensor.requires_grad());
}

}  // namespace

Model::Model(Spec spec, std::int64_t classes, Preprocessing default_preprocessing)
    : spec_(std::move(spec)), classes_(classes), preprocessing_(std::move(default_preprocessing)) {
  // More is a slip of the finger, and would be asked of the memory first.
  constexpr std::int64_t kMostClasses = 1'000'000;
  if (classes_ < 2 || classes_ > kMostClasses) {
    fail<ConfigError>("{} {}: classes must be from 2 to {}, not {}", kKind, spec_.name,
                      kMostClasses, classes_);
  }
}

Model::Loan::Loan(Model& model)
    : model_(model), norm_mode_(model.norm_mode_), keeps_activations_(model.keeps_activations_) {
  model.check_not_lent();
  std::vector<at::Tensor> sources;
  for (const Buffer& buffer : model.buffers_) sources.push_back(buffer.value.clone());
  by_class_.reserve(sources.size());
  // A device or the host may refuse what stands above; from here on nothing is asked of them.
  std::size_t i = 0;
  for (Buffer& buffer : model.buffers_) {
    buffer.source = std::move(sources[i++]);
    by_class_.push_back(std::exchange(buffer.by_class, at::Tensor()));
  }
  model.lent_ = true;
}

Model::Loan::~Loan() {
  for (Parameter& parameter : model_.parameters_) parameter.value = parameter.value.detach();
  // Nothing is made anew: a device that is full or broken has no memory for it.
  std::size_t i = 0;
  for (Buffer& buffer : model_.buffers_) {
    buffer.source = at::Tensor();
    buffer.by_class = std::move(by_class_[i++]);
  }
  model_.label_spread_ = at::Tensor();
  model_.norm_mode_ = norm_mode_;
  model_.keeps_activations_ = keeps_activations_;
  model_.lent_ = false;
}

void Model::check_not_lent() const {
  if (lent_) {
    fail("the {} is being adapted: end its adapter first, or take another model", spec_.name);
  }
}

void Model::set_norm_mode(const NormMode& mode) {
  norm_mode_ = mode;
  if (mode.kind != NormKind::kBalanced) return;
  for (Buffer& buffer : buffers_) {
    // Those that are there stay: a captured pass writes them.
    if (buffer.by_class.defined()) continue;
    buffer.by_class = at::stack(
        std::vector<at::Tensor>(static_cast<std::size_t>(classes_), buffer.value.detach()));
  }
}

std::vector<Statistic> Model::statistics() {
  std::vector<Statistic> all;
  for (Buffer& buffer : buffers_) all.push_back({buffer.name, &buffer.value});
  for (Buffer& buffer : buffers_) {
    if (buffer.by_class.defined()) all.push_back({buffer.name + ".by_class", &buffer.by_class});
  }
  return all;
}

void Model::set_label_spread(double spread) {
  // In place: a captured pass reads it there.
  if (!label_spread_.defined()) {
    label_spread_ = at::ones({}, at::TensorOptions(at::kFloat).device(device()));
  }
  label_spread_.fill_(spread);
}

NormPass Model::norm_pass(const at::Tensor& images, bool update_statistics,
                          const at::Tensor& counted) {
  NormPass pass{norm_mode_, update_statistics, counted, label_spread_};
  if (norm_mode_.kind == NormKind::kTraining) pass.processes = processes_;
  if (norm_mode_.kind == NormKind::kAdaptive) {
    pass.used = std::make_shared<std::vector<at::Tensor>>();
  }
  if (norm_mode_.kind == NormKind::kBalanced && update_statistics) {
    pass.labels = seeming_classes(images);
  }
  return pass;
}

/// By the network's own answer, with the statistics as they are: -1 where it is not finite.
at::Tensor Model::seeming_classes(const at::Tensor& images) {
  const at::NoGradGuard no_grad;
  const at::Tensor logits = forward(images, /*update_statistics=*/false).logits;
  return logits.argmax(1).masked_fill(at::isfinite(logits).all(1).logical_not(), -1);
}

at::Tensor Model::moved_in(const NormPass& pass) {
  if (!pass.used || pass.used->empty()) return {};
  return at::stack(*pass.used).mean();
}

at::Device Model::device() const {
  return parameters_.front().value.device();
}

void Model::to(at::Device device) {
  check_not_lent();
  for (Parameter& parameter : parameters_) parameter.value = moved(parameter.value, device);
  for (Buffer& buffer : buffers_) {
    buffer.value = moved(buffer.value, device);
    if (buffer.by_class.defined()) buffer.by_class = moved(buffer.by_class, device);
  }
}

void Model::set_memory_format(at::MemoryFormat format) {
  check_not_lent();
  const at::NoGradGuard no_grad;
  memory_format_ = format;
  for (Parameter& parameter : parameters_) {
    if (parameter.value.dim() == 4) parameter.value = parameter.value.contiguous(format);
  }
}

Output Model::forward_again(const Output&, const at::Tensor& images, int) {
  return forward(images, /*update_statistics=*/false);
}

bool Model::is_passive(std::string_view name) const {
  // PyTorch counts batches in every norm layer; nothing here needs the count.
  return name.ends_with("num_batches_tracked");
}

void Model::initialize(std::uint64_t seed) {
  if (brings_weights()) fail("the {} brings its weights: they are not drawn anew", spec_.name);
  const at::NoGradGuard no_grad;
  // A generator for each parameter: the values depend neither on the threads nor on the order.
  std::vector<at::Tensor> drawn(parameters_.size());
  at::parallel_for(
      0, static_cast<std::int64_t>(drawn.size()), 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          drawn[static_cast<std::size_t>(i)] = draw(parameters_, static_cast<std::size_t>(i), seed);
        }
      });
  for (std::size_t i = 0; i < drawn.size(); ++i) parameters_[i].value.copy_(drawn[i]);
  for (const Statistic& each : statistics()) {
    each.value->fill_(each.name.find(".running_var") != std::string::npos ? 1 : 0);
  }
}

void Model::check_images(const at::Tensor& images) const {
  if (images.dim() != 4 || images.size(1) != 3 || images.numel() == 0) {
    fail("{} {} expects images [N, 3, H, W], at least one, but got [{}]", kKind, spec_.name,
         fmt::join(images.sizes(), ", "));
  }
}

void Model::check_norm_epsilon(double epsilon) const {
  if (!(epsilon > 0)) {
    fail<ConfigError>("{} {}: norm_epsilon must be above 0, not {}", kKind, spec_.name, epsilon);
  }
}

}  // namespace gala
