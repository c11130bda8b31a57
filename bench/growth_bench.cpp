// How the price of a step grows: with the images of a batch, with the parameters of the network, and
// with the number of layers that the same parameters are divided into.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>

#include "gala/adapt/adapter.h"
#include "gala/base/error.h"
#include "gala/base/host_memory.h"
#include "gala/base/stopwatch.h"
#include "gala/model/layout.h"
#include "gala/step/displacement.h"
#include "gala/tensor/torch_workspace.h"

namespace gala {
namespace {

/// One size of something, and what is to be timed at it.
struct Point {
  std::int64_t size = 0;  ///< in the unit of the sweep
  std::function<void()> run;
  std::vector<double> times;

  double median() {
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }
};

struct Sweep {
  std::string name, unit;
  std::vector<Point> points;
};

/// In rounds over all points, so that a slow moment of the machine meets all of them.
void measure(Sweep& sweep, int rounds) {
  for (Point& point : sweep.points) {
    for (int i = 0; i < 3; ++i) point.run();  // the third is a replay of what the second recorded
  }
  for (int round = 0; round < rounds; ++round) {
    for (Point& point : sweep.points) {
      Stopwatch watch;
      point.run();
      point.times.push_back(watch.lap());
    }
  }
}

/// A network and its adapter; as in step_bench the rate is too small to change what is computed.
struct Contender {
  std::unique_ptr<Model> model;
  std::unique_ptr<Adapter> adapter;
  at::Tensor images;

  Contender(const std::string& spec, std::int64_t batch, at::Device device)
      : model(make_model(Spec::parse(spec), 1)) {
    model->to(device);
    set_layout(*model, Layout::kChannelsLast, {});
    // Every answer counts: an untrained network is too unsure for the default.
    adapter = std::make_unique<Adapter>(
        *model, MethodOptions{.loss = "pseudo_label:beta=0", .optimizer = "adam:rate=1e-07"});
    const std::int64_t size = model->preprocessing().size;
    images = at::rand({batch, 3, size, size}).to(device);
  }
};

Point step_of(const std::string& spec, std::int64_t batch, std::int64_t size, at::Device device) {
  const auto contender = std::make_shared<Contender>(spec, batch, device);
  return {size, [contender] { contender->adapter->answer(contender->images); }, {}};
}

Sweep over_batches(at::Device device) {
  const bool gpu = device.is_cuda();
  Sweep sweep{gpu ? "ResNet-18, 224 x 224" : "WRN-16-2, 32 x 32", "images", {}};
  const std::string spec = gpu ? "resnet18:classes=7" : "wide_resnet:depth=16,width=2,classes=10";
  for (const std::int64_t batch : {1, 4, 16, 64, 256}) {
    sweep.points.push_back(step_of(spec, batch, batch, device));
  }
  return sweep;
}

Sweep over_parameters(at::Device device) {
  Sweep sweep{"WRN-16-k, a batch of 16", "thousand parameters", {}};
  for (const int width : {1, 2, 4, 8, 16}) {
    if (width == 16 && !device.is_cuda()) continue;
    const std::string spec = fmt::format("wide_resnet:depth=16,width={},classes=10", width);
    std::int64_t count = 0;
    for (const Parameter& parameter : make_model(Spec::parse(spec), 1)->parameters()) {
      count += parameter.value.numel();
    }
    sweep.points.push_back(step_of(spec, 16, count / 1000, device));
  }
  return sweep;
}

/// Measuring and choosing alone.
struct Choice {
  ParameterArena arena;
  LayerPartition layers;
  TorchWorkspace workspace;
  Displacement displacement;
  std::unique_ptr<Optimizer> optimizer = make_optimizer("adam:rate=1e-07");
  std::unique_ptr<Selector> selector = make_selector("gala", 0);
  Gradients gradients;
  at::Tensor loss, table;
  StepClock clock;

  static std::vector<NamedTensor> tensors(std::int64_t parameters, std::int64_t count,
                                          at::Device device) {
    std::vector<NamedTensor> result;
    for (std::int64_t i = 0; i < count; ++i) {
      result.push_back({fmt::format("layer{}", i), at::randn({parameters / count}).to(device)});
    }
    return result;
  }
  Choice(std::int64_t parameters, std::int64_t count, at::Device device)
      : arena(tensors(parameters, count, device)),
        workspace(device),
        displacement(arena.values().const_data_ptr<float>(), arena.size(), workspace,
                     DisplacementForm::kSum, Anchor::kWindow) {
    for (std::size_t i = 0; i < arena.entries().size(); ++i) {
      layers.layers.push_back({fmt::format("layer{}", i), {i}, arena.entries()[i].range.size});
      gradients.tensors.push_back(at::randn_like(arena.leaf(i).detach()));
    }
    optimizer->attach({arena.layout(), layers, arena.values().mutable_data_ptr<float>(), workspace,
                       selector->reads_values()});
    selector->attach(layers);
    loss = at::zeros({}, at::TensorOptions(at::kFloat).device(device));
    table = at::zeros({count, kSumColumns}, at::TensorOptions(at::kDouble).device(device));
  }
  void run() {
    optimizer->prepare();
    const std::vector<const float*> pointers = gradients.pointers();
    optimizer->measure(pointers, loss.const_data_ptr<float>(), displacement.view(),
                       table.mutable_data_ptr<double>());
    const at::Tensor here = table.cpu();
    std::vector<LayerSums> sums;
    for (std::size_t l = 0; l < layers.size(); ++l) {
      sums.push_back(
          read_sums(here.const_data_ptr<double>() + l * kSumColumns, layers.layers[l].count));
    }
    const std::vector<double> weights =
        selector->select({layers, sums, clock, 1e-7, arena.layout(), pointers, workspace});
    clock.advance(20);
  }
};

Sweep over_layers(at::Device device) {
  constexpr std::int64_t kParameters = 8'000'000;
  Sweep sweep{"measuring and choosing, 8 million parameters", "layers", {}};
  for (const std::int64_t count : {1, 10, 100, 1000}) {
    const auto choice = std::make_shared<Choice>(kParameters, count, device);
    sweep.points.push_back({count, [choice] { choice->run(); }, {}});
  }
  return sweep;
}

/// growth_bench [cpu|cuda] [FILE]: prints tables, and writes them as JSON where a file is named.
void run(const std::string& device_name, const std::string& file) {
  if (device_name != "cpu" && device_name != "cuda") {
    fail("the device must be cpu or cuda, not {}", device_name);
  }
  const at::Device device = device_name == "cpu" ? at::Device(at::kCPU) : at::Device(at::kCUDA, 0);
  if (device.is_cuda()) {
    if (!at::globalContext().hasCUDA()) fail("there is no CUDA device here");
    allow_tf32(Precision::kTf32);
    at::globalContext().setBenchmarkCuDNN(true);
  }
  nlohmann::json written = nlohmann::json::array();
  for (Sweep sweep : {over_batches(device), over_parameters(device), over_layers(device)}) {
    measure(sweep, device.is_cuda() ? 101 : 11);
    std::cout << fmt::format("\n| {}: {} | ms | us for each |\n| --- | --- | --- |\n", sweep.name,
                             sweep.unit);
    for (Point& point : sweep.points) {
      const double median = point.median();
      std::cout << fmt::format("| {} | {:.3f} | {:.2f} |\n", point.size, median,
                               1000 * median / static_cast<double>(point.size));
      written.push_back({{"device", device_name},
                         {"sweep", sweep.name},
                         {"unit", sweep.unit},
                         {"size", point.size},
                         {"ms", median}});
    }
  }
  if (!file.empty()) std::ofstream(file) << written.dump(1) << '\n';
}

}  // namespace
}  // namespace gala

int main(int argc, char** argv) {
  gala::keep_freed_memory();  // as the program does
  try {
    gala::run(argc > 1 ? argv[1] : "cpu", argc > 2 ? argv[2] : "");
    std::cout.flush();
    std::quick_exit(0);  // what LibTorch holds may be gone before our own is
  } catch (const std::exception& problem) {
    std::cerr << "growth_bench: " << problem.what() << '\n';
    return 1;
  }
}
