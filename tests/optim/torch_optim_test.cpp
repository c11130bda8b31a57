// With every layer moving, the optimizers are those of LibTorch.
#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <functional>

#include "tests/optim/bench.h"

namespace gala {
namespace {

/// Largest relative error, over the tensors, of the way gone from the start.
double worst_error(const Bench& bench, const std::vector<at::Tensor>& expected) {
  const auto start = bench_parameters(21);
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const at::Tensor way = (expected[i].detach() - start[i].tensor).to(at::kDouble);
    const at::Tensor error = (bench.arena.leaf(i).detach() - expected[i].detach()).to(at::kDouble);
    worst = std::max(worst, (error.norm() / way.norm()).item<double>());
  }
  return worst;
}

void expect_agreement(
    const std::string& spec,
    const std::function<std::unique_ptr<torch::optim::Optimizer>(const std::vector<at::Tensor>&)>&
        make) {
  SCOPED_TRACE(spec);
  Bench bench(spec);
  std::vector<at::Tensor> parameters;
  for (const auto& [name, tensor] : bench_parameters(21)) {
    parameters.push_back(tensor.clone().requires_grad_());
  }
  const auto reference = make(parameters);
  for (int step = 1; step <= 50; ++step) {
    const Gradients gradients = bench.gradients(step);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      parameters[i].mutable_grad() = gradients.tensors[i].clone();
    }
    reference->step();
    bench.step(gradients, {1, 1, 1, 1});
    // Every step may round a parameter one way or the other: early on that is much of the way.
    if (step % 10 != 0) continue;
    ASSERT_LT(worst_error(bench, parameters), 1e-6) << "after step " << step;
  }
}

TEST(AdamWithEveryLayer, IsTorchAdam) {
  using torch::optim::AdamOptions;
  const auto check = [](const std::string& spec, const AdamOptions& options) {
    expect_agreement(spec, [&](const std::vector<at::Tensor>& parameters) {
      return std::make_unique<torch::optim::Adam>(parameters, options);
    });
  };
  check("adam:rate=0.02", AdamOptions(0.02));
  check("adam:rate=0.02,moments=selected", AdamOptions(0.02));
  check("adam:rate=0.02,beta1=0.5,beta2=0.99,epsilon=0.001",
        AdamOptions(0.02).betas({0.5, 0.99}).eps(1e-3));
  check("adam:rate=0.02,beta1=0,weight_decay=0.1",
        AdamOptions(0.02).betas({0, 0.999}).weight_decay(0.1));
}

TEST(SgdWithEveryLayer, IsTorchSgd) {
  using torch::optim::SGDOptions;
  const auto check = [](const std::string& spec, const SGDOptions& options) {
    expect_agreement(spec, [&](const std::vector<at::Tensor>& parameters) {
      return std::make_unique<torch::optim::SGD>(parameters, options);
    });
  };
  // The small gradients of the second and fourth tensor must still move a parameter of 1 by more
  // than its rounding, or the way gone is nothing to compare with.
  check("sgd:rate=10", SGDOptions(10));
  check("sgd:rate=10,momentum=0.9", SGDOptions(10).momentum(0.9));
  check("sgd:rate=10,momentum=0.9,moments=selected", SGDOptions(10).momentum(0.9));
  check("sgd:rate=10,momentum=0.8,nesterov=yes", SGDOptions(10).momentum(0.8).nesterov(true));
  check("sgd:rate=0.5,momentum=0.9,weight_decay=0.1",
        SGDOptions(0.5).momentum(0.9).weight_decay(0.1));
  check("sgd:rate=0.5,momentum=0.9,nesterov=yes,weight_decay=0.1",
        SGDOptions(0.5).momentum(0.9).nesterov(true).weight_decay(0.1));
}

}  // namespace
}  // namespace gala
