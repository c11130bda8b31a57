#include "gala/select/auto_snr.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "gala/base/error.h"

namespace gala {
namespace {

constexpr double kFloor = 1e-8;

/// Σ over entries of the ratio, for the definition of the published program.
at::Tensor ratio_over_channels(const at::Tensor& gradient) {
  const at::Tensor rows = gradient.dim() == 0 ? gradient.reshape({1}) : gradient;
  const at::Tensor variance =
      rows.size(0) > 1 ? rows.var(/*dim=*/at::IntArrayRef{0}, /*unbiased=*/true, /*keepdim=*/true)
                       : at::zeros_like(rows);
  return (rows * rows / (variance + kFloor)).sum();
}

at::Tensor ratio_over_batches(const at::Tensor& gradients) {
  const at::Tensor mean = gradients.mean(0);
  const at::Tensor variance = gradients.var(/*dim=*/at::IntArrayRef{0}, /*unbiased=*/true);
  return (mean * mean / (variance + kFloor)).sum();
}

}  // namespace

AutoSnrSelector::AutoSnrSelector(const Options& options) : options_(options) {
  if (!(options.threshold >= 0)) {
    fail<ConfigError>("selector auto_snr: threshold must not be negative, not {}",
                      options.threshold);
  }
  if (options.history < 2) {
    fail<ConfigError>("selector auto_snr: history must be at least 2, not {}", options.history);
  }
}

std::vector<double> AutoSnrSelector::score(const Proposal& proposal) const {
  std::vector<at::Tensor> totals;
  for (const Layer& layer : proposal.layers.layers) {
    at::Tensor total = at::zeros({}, proposal.parameters.values().options());
    for (const std::size_t t : layer.tensors) {
      if (options_.definition == SnrDefinition::kCode) {
        const at::Tensor& gradient = proposal.gradients.tensors[t];
        if (gradient.defined()) total += ratio_over_channels(gradient);
        continue;
      }
      std::vector<at::Tensor> seen;
      // A loaded history lies on the CPU.
      for (const auto& gradients : history_) seen.push_back(gradients[t].to(total.device()));
      total += ratio_over_batches(at::stack(seen));
    }
    totals.push_back(total / static_cast<double>(layer.count));
  }
  const at::Tensor table = at::stack(totals).to(at::kCPU, at::kDouble).contiguous();
  const double* numbers = table.const_data_ptr<double>();
  return {numbers, numbers + totals.size()};
}

std::vector<double> AutoSnrSelector::select(const Proposal& proposal) {
  if (options_.definition == SnrDefinition::kPaper) {
    std::vector<at::Tensor> gradients;
    for (std::size_t t = 0; t < proposal.gradients.tensors.size(); ++t) {
      const at::Tensor& gradient = proposal.gradients.tensors[t];
      gradients.push_back(gradient.defined()
                              ? gradient.clone()
                              : at::zeros_like(proposal.parameters.leaf(t)).detach());
    }
    history_.push_back(std::move(gradients));
    if (static_cast<std::int64_t>(history_.size()) > options_.history) history_.pop_front();
    if (history_.size() < 2) return std::vector<double>(proposal.layers.size(), 1.0);
  }
  std::vector<double> scores = score(proposal);
  if (options_.definition == SnrDefinition::kPaper) {
    const double largest = *std::max_element(scores.begin(), scores.end());
    for (double& value : scores) value = largest > 0 ? value / largest : 0;
  }
  for (double& value : scores) value = value >= options_.threshold ? 1 : 0;
  return scores;
}

void AutoSnrSelector::save(State& state) const {
  state.values["selector_history"] = history_.size();
  for (std::size_t k = 0; k < history_.size(); ++k) {
    for (std::size_t t = 0; t < history_[k].size(); ++t) {
      state.tensors[fmt::format("selector_gradient{}/{}", k, t)] =
          history_[k][t].to(at::kCPU).clone(at::MemoryFormat::Contiguous);
    }
  }
}

void AutoSnrSelector::load(const State& state) {
  history_.clear();
  for (std::size_t k = 0; k < state.values.at("selector_history").get<std::size_t>(); ++k) {
    std::vector<at::Tensor>& gradients = history_.emplace_back();
    for (std::size_t t = 0;; ++t) {
      const auto found = state.tensors.find(fmt::format("selector_gradient{}/{}", k, t));
      if (found == state.tensors.end()) break;
      gradients.push_back(found->second);
    }
    if (gradients.empty()) fail("the state lacks the gradients of the selector's history");
  }
}

}  // namespace gala
