// A GALA step beside its floor: forward, loss and backward of the same network and batch. On a GPU
// the floor is one captured graph. Floors and steps are interleaved at random; see bench/run.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <thread>

#include "gala/adapt/adapter.h"
#include "gala/base/error.h"
#include "gala/base/host_memory.h"
#include "gala/base/options.h"
#include "gala/device/device_memory.h"
#include "gala/model/layout.h"
#include "gala/model/safetensors.h"
#include "gala/model/weights.h"

namespace gala {
namespace {

struct Case {
  std::string network;  ///< its name in the table
  std::string spec;
  std::int64_t batch;
  std::int64_t size;
  std::string norm;
  std::string precision;
};

struct Setting {
  at::Device device = at::kCPU;
  std::vector<Case> cases;
};

/// A network as it is adapted: on its device, in the layout that is fastest there.
std::unique_ptr<Model> make_network(const Case& what, at::Device device) {
  auto model = make_model(Spec::parse(what.spec), 1);
  model->to(device);
  model->set_norm_mode(NormMode::parse(what.norm));
  Precision precision{};
  if (!parse_value(what.precision, precision)) fail("unknown precision {}", what.precision);
  model->set_precision(precision);
  if (device.is_cuda()) allow_tf32(precision);
  // On a GPU channels-last is the faster one for every case here. On the CPU it is tried once, so
  // that floor and step have the same.
  static std::map<std::string, at::MemoryFormat> tried;
  const std::string name = fmt::format("{} {}", what.spec, what.batch);
  if (device.is_cuda()) {
    set_layout(*model, Layout::kChannelsLast, {});
  } else if (const auto found = tried.find(name); found != tried.end()) {
    model->set_memory_format(found->second);
  } else {
    set_layout(*model, Layout::kFastest, {what.batch, 3, what.size, what.size});
    tried[name] = model->memory_format();
    std::cerr << name << ": "
              << (model->memory_format() == at::MemoryFormat::ChannelsLast ? "channels-last\n"
                                                                           : "contiguous\n");
  }
  return model;
}

at::Tensor make_images(const Case& what, at::Device device) {
  at::manual_seed(7);
  return at::rand({what.batch, 3, what.size, what.size}).to(device);
}

/// Every answer counts: untrained networks are too unsure for the default, and without a loss no layer
/// would move.
constexpr const char* kLoss = "pseudo_label:beta=0";

/// Forward, loss and backward, and nothing else.
class Floor {
 public:
  Floor(const Case& what, at::Device device)
      : queue_(WorkQueue::make(device)),
        model_(make_network(what, device)),
        loss_(make_loss(kLoss)),
        images_(make_images(what, device).contiguous(model_->memory_format())) {
    for (Parameter& parameter : model_->parameters()) {
      parameter.value = parameter.value.detach().requires_grad_();
    }
    {
      const auto scope = queue_->enter();
      pass();
      if (queue_->captures()) work_ = queue_->capture([&] { pass(); });
    }
    run();
  }
  void run() {
    const auto scope = queue_->enter();
    work_ ? work_->replay() : pass();
    queue_->wait();
  }
  const at::Tensor& logits() const { return logits_; }

 private:
  void pass() {
    const c10::AutoGradMode with_gradients(true);
    for (Parameter& parameter : model_->parameters()) parameter.value.mutable_grad() = at::Tensor();
    Output output = model_->forward(images_);
    loss_->evaluate({.student = output}).value.backward();
    logits_ = output.logits.detach();
  }

  std::unique_ptr<WorkQueue> queue_;  // outlives what lies in its memory
  std::unique_ptr<Model> model_;
  std::unique_ptr<Loss> loss_;
  at::Tensor images_, logits_;
  std::unique_ptr<CapturedWork> work_;
};

/// The product: one call of `answer` a batch, everything at its default but the loss's bound and the
/// rate, which is small so that a thousand steps on one batch do not change what is computed.
class Step {
 public:
  Step(const Case& what, at::Device device, bool record = true)
      : model_(make_network(what, device)),
        adapter_(*model_, {.loss = kLoss, .optimizer = "adam:rate=1e-07"}, {.capture = record}),
        images_(make_images(what, device)) {
    for (int i = 0; i < 3; ++i) first_ = adapter_.answer(images_).logits;
    if (!adapter_.capture_problem().empty()) fail("{}", adapter_.capture_problem());
  }
  void run() { adapter_.answer(images_); }
  const at::Tensor& logits() const { return first_; }
  /// Where the time of a step goes, in milliseconds.
  static StepTimes profile(const Case& what, at::Device device) {
    const auto model = make_network(what, device);
    Adapter adapter(*model, {.loss = kLoss, .optimizer = "adam:rate=1e-07"}, {.profile = true});
    const at::Tensor images = make_images(what, device);
    constexpr int kWarmUp = 5, kSteps = 20;
    StepTimes sum;
    for (int i = 0; i < kWarmUp + kSteps; ++i) {
      const StepTimes times = adapter.answer(images).steps[0].times;
      if (i < kWarmUp) continue;
      sum.forward += times.forward / kSteps;
      sum.backward += times.backward / kSteps;
      sum.measure += times.measure / kSteps;
      sum.select += times.select / kSteps;
      sum.apply += times.apply / kSteps;
    }
    return sum;
  }

 private:
  std::unique_ptr<Model> model_;
  Adapter adapter_;
  at::Tensor images_, first_;
};

std::string name_of(const Case& what) {
  return fmt::format("{}/{}/{}", what.network, what.batch, what.precision);
}

void warm_up(const std::function<void()>& run) {
  for (int i = 0; i < 5; ++i) run();
}

/// The peak of a run on a GPU, counted apart from everything that is there already.
template <class Contender>
std::int64_t peak_bytes(const Case& what, at::Device device) {
  if (!device.is_cuda()) return 0;
  // Once before: cuDNN tries its algorithms then, with large workspaces.
  std::make_unique<Contender>(what, device)->run();
  const std::int64_t before = memory_use(device).current;
  forget_peak(device);
  Contender contender(what, device);
  warm_up([&] { contender.run(); });
  return memory_use(device).peak - before;
}

/// Throws unless floor and step compute the same logits.
void check(const Case& what, const Floor& floor, const Step& step) {
  const double scale = floor.logits().abs().max().item<double>();
  const double difference = (floor.logits() - step.logits()).abs().max().item<double>();
  const double limit = what.precision == "float32" ? 1e-3 : 0.05;
  if (!(difference <= limit * scale + 1e-4)) {
    fail("{}: floor and step disagree by {} of {}", name_of(what), difference, scale);
  }
}

struct Pair {
  std::unique_ptr<Floor> floor;
  std::unique_ptr<Step> step;
};

/// Both contenders of a case, made when they are first needed.
Pair& pair_of(const Setting& setting, const Case& what) {
  static std::map<std::string, Pair> pairs;
  Pair& pair = pairs[name_of(what)];
  if (!pair.floor) {
    pair.floor = std::make_unique<Floor>(what, setting.device);
    pair.step = std::make_unique<Step>(what, setting.device);
    check(what, *pair.floor, *pair.step);
    warm_up([&] { pair.floor->run(); });
    warm_up([&] { pair.step->run(); });
  }
  return pair;
}

void add_benchmarks(const Setting& setting) {
  for (const Case& what : setting.cases) {
    // Tensors must not be destroyed after LibTorch: the peaks are taken before the pairs are made.
    const std::int64_t floor_peak = peak_bytes<Floor>(what, setting.device);
    const std::int64_t step_peak = peak_bytes<Step>(what, setting.device);
    const StepTimes times = Step::profile(what, setting.device);
    benchmark::RegisterBenchmark(("floor/" + name_of(what)).c_str(),
                                 [&setting, what, floor_peak](benchmark::State& state) {
                                   Pair& pair = pair_of(setting, what);
                                   for (auto _ : state) pair.floor->run();
                                   state.counters["peak_bytes"] = static_cast<double>(floor_peak);
                                 })
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(("step/" + name_of(what)).c_str(),
                                 [&setting, what, step_peak, times](benchmark::State& state) {
                                   Pair& pair = pair_of(setting, what);
                                   for (auto _ : state) pair.step->run();
                                   state.counters["peak_bytes"] = static_cast<double>(step_peak);
                                   state.counters["forward_ms"] = times.forward;
                                   state.counters["backward_ms"] = times.backward;
                                   state.counters["measure_ms"] = times.measure;
                                   state.counters["select_ms"] = times.select;
                                   state.counters["apply_ms"] = times.apply;
                                 })
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  }
}

/// Eight adapters at once beside eight one after the other.
void add_many(const Setting& setting, const Case& what) {
  constexpr int kAdapters = 8, kSteps = 30;
  const auto make = [&setting, what] {
    static std::map<std::string, std::vector<std::unique_ptr<Step>>> made;
    auto& steps = made[name_of(what)];
    while (steps.size() < kAdapters) steps.push_back(std::make_unique<Step>(what, setting.device));
    return &steps;
  };
  const auto run = [](Step& step) {
    for (int i = 0; i < kSteps; ++i) step.run();
  };
  benchmark::RegisterBenchmark(("eight_in_turn/" + name_of(what)).c_str(),
                               [make, run](benchmark::State& state) {
                                 auto& steps = *make();
                                 for (auto _ : state) {
                                   for (auto& step : steps) run(*step);
                                 }
                               })
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark(("eight_at_once/" + name_of(what)).c_str(),
                               [make, run](benchmark::State& state) {
                                 auto& steps = *make();
                                 for (auto _ : state) {
                                   std::vector<std::thread> threads;
                                   for (auto& step : steps)
                                     threads.emplace_back(run, std::ref(*step));
                                   for (std::thread& thread : threads) thread.join();
                                 }
                               })
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}

Setting make_setting(const std::string& device) {
  const Case resnet18{"resnet18", "resnet18:classes=7", 32, 224, "source", "tf32"};
  const Case resnet50{"resnet50", "resnet50:classes=7", 32, 224, "source", "tf32"};
  const Case wide{"wrn28_10", "wide_resnet:depth=28,width=10,classes=10", 200, 32, "batch", "tf32"};
  const auto with = [](Case what, std::int64_t batch, const char* precision) {
    what.batch = batch;
    what.precision = precision;
    return what;
  };
  const auto and_exported = [](std::vector<Case> cases, const char* precision) {
    if (const char* file = std::getenv("GALA_BENCH_EXPORTED")) {
      cases.push_back(
          {"exported", fmt::format("exported:path={}", file), 32, 224, "source", precision});
    }
    return cases;
  };
  if (device == "cpu") {
    return {at::kCPU,
            and_exported({with(resnet18, 32, "float32"), with(resnet18, 1, "float32")}, "float32")};
  }
  if (device != "cuda") fail("the device must be cpu or cuda, not {}", device);
  if (!at::globalContext().hasCUDA()) fail("there is no CUDA device here");
  at::globalContext().setBenchmarkCuDNN(true);
  const std::vector<Case> cases = {resnet18,
                                   with(resnet18, 1, "tf32"),
                                   resnet50,
                                   with(resnet50, 1, "tf32"),
                                   wide,
                                   with(wide, 200, "bf16"),
                                   with(wide, 1, "tf32")};
  return {at::Device(at::kCUDA, 0), and_exported(cases, "tf32")};
}

/// Writes what plain_step.py needs to check that it takes the same steps.
void export_steps(const std::filesystem::path& folder) {
  constexpr double kRate = 1e-4, kBeta = 0;  // every answer counts: an untrained network is unsure
  const auto model = make_model(Spec::parse("resnet18:classes=7"), 1);
  const at::Tensor images = make_images({"resnet18", "", 2, 64, "", ""}, at::kCPU);
  save_weights(*model, folder / "weights.safetensors");
  write_safetensors(folder / "images.safetensors", std::vector<NamedTensor>{{"images", images}},
                    {});
  Adapter adapter(*model, {.loss = fmt::format("pseudo_label:beta={}", kBeta),
                           .optimizer = fmt::format("adam:rate={}", kRate)});
  nlohmann::json steps = nlohmann::json::array();
  for (int i = 0; i < 5; ++i) {
    const StepRecord step = adapter.answer(images).steps[0];
    nlohmann::json cosines;
    for (std::size_t l = 0; l < step.layers.size(); ++l) {
      cosines[adapter.layers()[l].name] = step.layers[l].cosine;
    }
    steps.push_back({{"loss", step.loss}, {"cosines", cosines}});
  }
  std::ofstream(folder / "steps.json") << nlohmann::json{
      {"network", "resnet18"}, {"rate", kRate}, {"beta", kBeta}, {"steps", steps}};
}

}  // namespace
}  // namespace gala

/// step_bench cpu|cuda [flags of Google Benchmark], or: step_bench export FOLDER
int main(int argc, char** argv) {
  gala::keep_freed_memory();  // as the program does
  try {
    const std::string device = argc > 1 ? argv[1] : "cpu";
    if (device == "export" && argc == 3) {
      gala::export_steps(argv[2]);
      return 0;
    }
    std::vector<char*> rest = {argv[0]};
    for (int i = 2; i < argc; ++i) rest.push_back(argv[i]);
    int count = static_cast<int>(rest.size());
    benchmark::Initialize(&count, rest.data());
    if (benchmark::ReportUnrecognizedArguments(count, rest.data())) return 2;
    static const gala::Setting setting = gala::make_setting(device);
    gala::add_benchmarks(setting);
    if (device == "cuda") {
      gala::add_many(setting, setting.cases[0]);
      gala::add_many(setting, setting.cases[1]);
    }
    benchmark::AddCustomContext("threads", std::to_string(at::get_num_threads()));
    benchmark::RunSpecifiedBenchmarks();
    // Without the destructors of what is static: LibTorch's own may have run before them.
    std::cout.flush();
    std::quick_exit(0);
  } catch (const std::exception& problem) {
    std::cerr << "step_bench: " << problem.what() << '\n';
    return 1;
  }
}
