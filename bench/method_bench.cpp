// A step of a method that looks twice, has a teacher or probes, beside its own forward and backward passes:
// method_bench cpu|cuda [FILE.json]. On a GPU the passes are one captured graph. What a view shows
// is made beforehand for the passes, and anew at every step by the step.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "gala/adapt/adapter.h"
#include "gala/adapt/fit.h"
#include "gala/base/error.h"
#include "gala/base/host_memory.h"
#include "gala/base/stopwatch.h"
#include "gala/method/recipe.h"
#include "gala/model/layout.h"

namespace gala {
namespace {

struct Case {
  std::string name;    ///< in the table
  std::string recipe;  ///< the method
  std::string teacher = {};
  int forwards = 0;     ///< passes forward without gradient: those of a teacher
  bool second = false;  ///< the images that count are looked at again, with gradient
  bool probes = false;  ///< a second gradient of the same pass
};

const Case kCases[] = {
    {.name = "Tent", .recipe = "tent"},
    {.name = "ROID", .recipe = "roid", .second = true},
    {.name = "CoTTA, four looks",
     .recipe = "cotta",
     .teacher = "mean:views=4,below=1",
     .forwards = 5},  // the source model says whether it is sure, then four looks
    {.name = "PALM", .recipe = "palm", .second = true, .probes = true},
};

constexpr std::int64_t kBatch = 200, kSide = 32;
// What docs/performance.md promises.
constexpr double kMost = 1.10;

MethodOptions options_of(const Case& what) {
  MethodOptions options = recipe(what.recipe);
  if (!what.teacher.empty()) options.teacher = what.teacher;
  // Too small to change what is computed; the guard and everything else stay at their defaults.
  const std::string rule = Spec::parse(options.optimizer).name;
  options.optimizer = rule + ":rate=1e-9";
  return options;
}

std::unique_ptr<Model> make_network(const std::string& spec, at::Device device) {
  auto model = make_model(Spec::parse(spec), 1);
  model->to(device);
  if (device.is_cuda()) {
    model->set_precision(Precision::kTf32);
    allow_tf32(Precision::kTf32);
    set_layout(*model, Layout::kChannelsLast, {});
  }
  return model;
}

at::Tensor make_images(at::Device device) {
  at::manual_seed(7);
  return at::rand({kBatch, 3, kSide, kSide}).to(device);
}

class Step {
 public:
  Step(const Case& what, const std::string& network, at::Device device)
      : model_(make_network(network, device)),
        adapter_(*model_, options_of(what)),
        images_(make_images(device)) {}
  void run() { last_ = adapter_.answer(images_); }
  std::int64_t counted() const { return last_.steps.front().confident; }

 private:
  std::unique_ptr<Model> model_;
  Adapter adapter_;
  at::Tensor images_;
  Answer last_;
};

/// The passes that the step makes, by themselves. `counted` images are looked at again.
class Passes {
 public:
  Passes(const Case& what, const std::string& network, std::int64_t counted, at::Device device)
      : what_(what),
        queue_(WorkQueue::make(device)),
        model_(make_network(network, device)),
        images_(make_images(device).contiguous(model_->memory_format())),
        again_(images_.narrow(0, 0, counted).contiguous(model_->memory_format())) {
    const MethodOptions options = options_of(what);
    MethodParts parts;
    make_parts(options, parts);
    model_->set_norm_mode(NormMode::parse(options.norm));
    adapted_ = fit(*model_, options, parts, /*has_source_images=*/false).adapted;
    for (Parameter* parameter : adapted_) {
      parameter->value = parameter->value.detach().requires_grad_();
    }
    const auto scope = queue_->enter();
    pass();
    if (queue_->captures()) work_ = queue_->capture([&] { pass(); });
  }
  void run() {
    const auto scope = queue_->enter();
    work_ ? work_->replay() : pass();
    queue_->wait();
  }

 private:
  void pass() {
    for (int i = 0; i < what_.forwards; ++i) {
      const c10::NoGradGuard no_grad;
      model_->forward(images_, /*update_statistics=*/false);
    }
    const c10::AutoGradMode with_gradients(true);
    for (Parameter* parameter : adapted_) parameter->value.mutable_grad() = at::Tensor();
    const at::Tensor logits = model_->forward(images_).logits;
    at::Tensor loss = at::logsumexp(logits, 1).mean();
    if (what_.second) {
      loss = loss +
             at::logsumexp(model_->forward(again_, /*update_statistics=*/false).logits, 1).mean();
    }
    if (what_.probes) logits.square().mean().backward({}, /*retain_graph=*/true);
    loss.backward();
  }

  Case what_;
  std::unique_ptr<WorkQueue> queue_;  // outlives what lies in its memory
  std::unique_ptr<Model> model_;
  at::Tensor images_, again_;
  std::vector<Parameter*> adapted_;
  std::unique_ptr<CapturedWork> work_;
};

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

nlohmann::json measure(const Case& what, const std::string& name, const std::string& network,
                       at::Device device) {
  const int rounds = device.is_cuda() ? 200 : 9;
  Step step(what, network, device);
  for (int i = 0; i < 4; ++i) step.run();
  // PALM looks at all of them, ROID at those that count.
  std::int64_t again = what.second ? kBatch : 0;
  if (what.recipe == "roid") again = std::max<std::int64_t>(step.counted(), 1);
  Passes passes(what, network, again, device);
  passes.run();
  std::vector<double> steps, floors;
  for (int round = 0; round < rounds; ++round) {  // by turns, so that both meet the same moments
    Stopwatch watch;
    passes.run();
    floors.push_back(watch.lap());
    step.run();
    steps.push_back(watch.lap());
  }
  const double floor = median(floors), whole = median(steps);
  fmt::print("| {} | {} | {} | {:.2f} | {:.2f} | {:.3f} | {} |\n", what.name, name, again, floor,
             whole, whole / floor, kMost);
  std::cout.flush();
  return {{"method", what.name}, {"network", name},       {"device", device.str()},
          {"batch", kBatch},     {"looked_again", again}, {"passes_ms", floor},
          {"step_ms", whole}};
}

void run(const std::string& name, const std::string& file) {
  if (name != "cpu" && name != "cuda") fail("the device must be cpu or cuda, not {}", name);
  const bool cuda = name == "cuda";
  if (cuda && !at::globalContext().hasCUDA()) fail("there is no CUDA device here");
  if (cuda) at::globalContext().setBenchmarkCuDNN(true);
  const at::Device device = cuda ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
  std::vector<std::pair<std::string, std::string>> networks = {
      {"WRN-16-2", "wide_resnet:depth=16,width=2,classes=10"}};
  if (cuda) networks.emplace_back("WRN-28-10", "wide_resnet:depth=28,width=10,classes=10");
  fmt::print(
      "| step of | network | looked at again | passes ms | step ms | step / passes | limit |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n");
  nlohmann::json rows = nlohmann::json::array();
  for (const auto& [network, spec] : networks) {
    for (const Case& what : kCases) rows.push_back(measure(what, network, spec, device));
  }
  if (!file.empty()) std::ofstream(file) << rows.dump(1) << '\n';
}

}  // namespace
}  // namespace gala

int main(int argc, char** argv) {
  gala::keep_freed_memory();  // as the program does
  try {
    gala::run(argc > 1 ? argv[1] : "cpu", argc > 2 ? argv[2] : "");
    return 0;
  } catch (const std::exception& problem) {
    std::cerr << "method_bench: " << problem.what() << '\n';
    return 1;
  }
}
