// A step after backward, over pointers to what PyTorch holds.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <utility>

#include "gala/base/error.h"
#include "gala/step/stepper.h"
#include "python/src/bind.h"
#include "python/src/make_workspace.h"
#include "python/src/own_selector.h"
#include "python/src/python_archive.h"

namespace nb = nanobind;

namespace gala::python {
namespace {

using Address = std::uintptr_t;
using Tensors =
    std::vector<std::tuple<std::string, std::vector<std::int64_t>, std::vector<std::int64_t>>>;
using Layers = std::vector<std::pair<std::string, std::vector<std::size_t>>>;

/// A stepper, and the numbers of the pass that comes before the choice.
class PythonStepper {
 public:
  PythonStepper(const Tensors& tensors, Address values, const Layers& layers,
                const std::string& optimizer, SelectorHolder& selector, const std::string& run,
                int threads, int device)
      : device_(device) {
    ArenaLayout layout;
    for (const auto& [name, sizes, strides] : tensors) layout.add(name, sizes, strides);
    LayerPartition partition;
    for (const auto& [name, members] : layers) {
      Layer& layer = partition.layers.emplace_back(Layer{name, members, 0});
      for (const std::size_t t : members) layer.count += layout.entries.at(t).range.size;
    }
    auto workspace = make_workspace(threads, device);
    workspace_ = workspace.get();
    selector.get().name_run(run);
    selector.get().attach(partition);
    auto made = make_optimizer(optimizer);
    stepper_ = std::make_unique<Stepper>(std::move(layout), reinterpret_cast<float*>(values),
                                         std::move(partition), std::move(made),
                                         std::move(selector.selector), std::move(workspace));
    table_ = workspace_->make(static_cast<std::int64_t>(numbers() * sizeof(double)));
  }

  void begin() { stepper_->begin(); }

  /// Queues the sums of the update of every layer. `gate` is a float on the device: where it is not finite,
  /// no moment moves.
  void measure(const std::vector<Address>& gradients, Address gate) {
    if (gradients.size() != stepper_->layout().entries.size()) {
      fail("{} gradients were given for {} tensors", gradients.size(),
           stepper_->layout().entries.size());
    }
    recall(gradients);
    stepper_->measure(gradients_, reinterpret_cast<const float*>(gate), table_.data<double>());
  }

  /// The gradients of a pass that a captured graph measured again.
  void recall(const std::vector<Address>& gradients) {
    gradients_.clear();
    for (const Address each : gradients) gradients_.push_back(reinterpret_cast<const float*>(each));
  }

  /// Waits for them, chooses, and moves.
  StepRecord move(double loss, const std::vector<double>& probed, double images, double moved) {
    std::vector<double> table(numbers());
    workspace_->fetch(table.data(), table_.data<double>(), table_.bytes());
    std::vector<LayerSums> sums;
    for (std::size_t l = 0; l < stepper_->layers().size(); ++l) {
      sums.push_back(read_sums(table.data() + l * kSumColumns, stepper_->layers()[l].count));
    }
    return stepper_->move(gradients_, loss, sums, {probed, images, moved});
  }

  StepRecord pause(double loss) const { return stepper_->pause(loss); }
  void reset() { stepper_->reset(); }
  void restart() { stepper_->restart(); }
  void remember(nb::object target) {
    PythonArchive archive(std::move(target), stepper_->layout().size, device_);
    stepper_->remember(archive);
  }
  void use_stream(Address stream) { set_stream(*workspace_, reinterpret_cast<void*>(stream)); }

  const Stepper& get() const { return *stepper_; }

 private:
  std::size_t numbers() const { return stepper_->layers().size() * kSumColumns; }

  int device_;
  Workspace* workspace_;
  std::unique_ptr<Stepper> stepper_;
  Memory table_;
  std::vector<const float*> gradients_;
};

template <double LayerRecord::*kMember>
std::vector<double> column(const StepRecord& record) {
  std::vector<double> values;
  for (const LayerRecord& layer : record.layers) values.push_back(layer.*kMember);
  return values;
}

}  // namespace

void bind_stepper(nb::module_& m) {
  nb::class_<StepRecord>(m, "StepRecord")
      .def_rw("step", &StepRecord::step)
      .def_rw("batch", &StepRecord::batch)
      .def_rw("confident", &StepRecord::confident)
      .def_ro("window_step", &StepRecord::window_step)
      .def_ro("loss", &StepRecord::loss)
      .def_ro("gradient_norm", &StepRecord::gradient_norm)
      .def_ro("refused", &StepRecord::refused)
      .def_prop_ro("skipped", &StepRecord::skipped)
      .def_prop_ro("selected", &StepRecord::selected)
      .def_prop_ro("gap", &StepRecord::gap)
      .def_prop_ro("cosines", &column<&LayerRecord::cosine>)
      .def_prop_ro("update_norms", &column<&LayerRecord::update_norm>)
      .def_prop_ro("shift_norms", &column<&LayerRecord::shift_norm>)
      .def_prop_ro("weights", &column<&LayerRecord::weight>);
  using Release = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<PythonStepper>(m, "Stepper")
      .def(nb::init<const Tensors&, Address, const Layers&, const std::string&, SelectorHolder&,
                    const std::string&, int, int>(),
           nb::arg("tensors"), nb::arg("values"), nb::arg("layers"), nb::arg("optimizer"),
           nb::arg("selector"), nb::arg("run"), nb::arg("threads"), nb::arg("device"))
      .def("begin", &PythonStepper::begin, Release())
      .def("measure", &PythonStepper::measure, Release(), nb::arg("gradients"), nb::arg("gate"))
      .def("recall", &PythonStepper::recall, nb::arg("gradients"))
      .def("move", &PythonStepper::move, Release(), nb::arg("loss"), nb::arg("probed"),
           nb::arg("images"), nb::arg("moved") = 1.0)
      .def("pause", &PythonStepper::pause, nb::arg("loss"))
      .def("reset", &PythonStepper::reset)
      .def("restart", &PythonStepper::restart)
      .def("remember", &PythonStepper::remember)
      .def("use_stream", &PythonStepper::use_stream)
      .def_prop_ro("idle", [](const PythonStepper& self) { return self.get().idle(); })
      .def_prop_ro("probe",
                   [](const PythonStepper& self) {
                     const Spec spec = self.get().probe();
                     return spec.name.empty() ? std::string() : spec.to_string();
                   })
      .def_prop_ro("learning_rate",
                   [](const PythonStepper& self) { return self.get().learning_rate(); })
      .def_prop_ro("can_be_captured",
                   [](const PythonStepper& self) { return self.get().can_be_captured(); });
}

}  // namespace gala::python
