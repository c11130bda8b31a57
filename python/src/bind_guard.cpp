#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "gala/layer/lanes.h"
#include "gala/step/guard.h"
#include "gala/step/label_spread.h"
#include "python/src/bind.h"
#include "python/src/python_archive.h"

namespace nb = nanobind;

namespace gala::python {

void bind_guard(nb::module_& m) {
  nb::class_<BatchHealth>(m, "BatchHealth")
      .def_ro("predictions", &BatchHealth::predictions)
      .def_rw("entropy_sum", &BatchHealth::entropy_sum)
      .def_rw("update_norm", &BatchHealth::update_norm)
      .def_rw("refused", &BatchHealth::refused)
      .def_rw("steps", &BatchHealth::steps)
      .def_rw("not_finite", &BatchHealth::not_finite)
      .def_rw("broken", &BatchHealth::broken)
      .def_rw("lost", &BatchHealth::lost);
  m.def("look_at", [](std::uintptr_t logits, std::int64_t images, std::int64_t classes) {
    return look_at(reinterpret_cast<const float*>(logits), images, classes);
  });
  m.def("sum_of_squares", [](std::uintptr_t data, std::int64_t size) {
    return sum_of_squares(reinterpret_cast<const float*>(data), size);
  });
  nb::class_<HealthEvent>(m, "HealthEvent")
      .def_rw("batch", &HealthEvent::batch)
      .def_ro("collapsed", &HealthEvent::collapsed)
      .def_ro("reasons", &HealthEvent::reasons)
      .def_ro("histogram", &HealthEvent::histogram)
      .def_ro("effective_classes", &HealthEvent::effective_classes)
      .def_ro("entropy", &HealthEvent::entropy)
      .def_ro("displacement", &HealthEvent::displacement)
      .def_ro("exact", &HealthEvent::exact)
      .def_ro("agreement", &HealthEvent::agreement)
      .def_ro("drift", &HealthEvent::drift)
      .def_ro("action", &HealthEvent::action)
      .def("to_json", [](const HealthEvent& self) { return self.to_json().dump(); });
  nb::class_<Guard>(m, "Guard")
      .def(nb::init<std::string_view, std::int64_t>())
      .def_prop_ro("action", [](const Guard& self) { return format_value(self.action()); })
      .def_prop_ro("to_healthy",
                   [](const Guard& self) { return self.options().to == RollbackTarget::kHealthy; })
      .def("is_far", &Guard::is_far)
      .def("asks_source", &Guard::asks_source)
      .def("compare", &Guard::compare)
      .def("observe", &Guard::observe)
      .def("judge", &Guard::judge, nb::arg("displacement"), nb::arg("exact"))
      .def("forget", &Guard::forget, nb::arg("all"))
      .def("save", [](const Guard& self) { return self.save().dump(); })
      .def("load",
           [](Guard& self, const std::string& text) { self.load(nlohmann::json::parse(text)); });
  nb::class_<LabelSpread>(m, "LabelSpread")
      .def(nb::init<std::int64_t>())
      .def("take", [](LabelSpread& self, const std::vector<std::int64_t>& all) { self.take(all); })
      .def_prop_ro("value", &LabelSpread::value)
      .def("reset", &LabelSpread::reset)
      .def("remember", [](LabelSpread& self, nb::object target) {
        PythonArchive archive(std::move(target), /*size=*/0, /*device=*/0);
        self.remember(archive);
      });
}

}  // namespace gala::python
