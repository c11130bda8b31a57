#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>

#include "gala/base/error.h"
#include "python/src/bind.h"
#include "python/src/own_selector.h"

namespace nb = nanobind;

namespace gala::python {
namespace {

/// A selector written in Python: it gets the sums of every layer and returns weights. `choose` is called
/// with [(name, count, cosine, |u|², u·TD, |TD|², |g|², |θ|²)], step, window step and rate.
class PythonSelector : public Selector {
 public:
  PythonSelector(nb::object choose, const Window& window, Granularity granularity)
      : choose_(std::move(choose)), window_(window), granularity_(granularity) {}

  std::vector<double> select(const Proposal& proposal) override {
    const nb::gil_scoped_acquire hold;
    nb::list rows;
    for (std::size_t l = 0; l < proposal.layers.size(); ++l) {
      const LayerSums& sums = proposal.sums[l];
      rows.append(nb::make_tuple(proposal.layers[l].name, sums.count, cosine(sums), sums.update_sq,
                                 sums.update_dot_shift, sums.shift_sq, sums.gradient_sq,
                                 sums.value_sq));
    }
    const nb::object weights =
        choose_(rows, proposal.clock.step, proposal.clock.window_step, proposal.learning_rate);
    return nb::cast<std::vector<double>>(weights);
  }
  Window window() const override { return window_; }
  Granularity default_granularity() const override { return granularity_; }

 private:
  nb::object choose_;
  Window window_;
  Granularity granularity_;
};

SelectorHolder python_selector(nb::object choose, std::int64_t window,
                               const std::string& granularity) {
  Granularity parsed{};
  if (!parse_value(granularity, parsed)) {
    fail<ConfigError>("granularity cannot be \"{}\" (expected {})", granularity,
                      accepted_values<Granularity>());
  }
  if (window < 0) fail<ConfigError>("the selector's window must not be negative, not {}", window);
  return {std::make_unique<PythonSelector>(std::move(choose), Window{.length = window}, parsed)};
}

nb::dict filter_of(const SelectorHolder& holder, bool head) {
  ParameterFilter filter{.head = head};
  holder.get().restrict(filter);
  nb::dict fields;
  fields["head"] = filter.head;
  fields["norms"] = filter.norms;
  fields["others"] = filter.others;
  fields["skip"] = filter.skip;
  return fields;
}

}  // namespace

void bind_selector(nb::module_& m) {
  nb::class_<SelectorHolder>(m, "Selector")
      .def("__init__",
           [](SelectorHolder* self, const std::string& spec, std::int64_t seed) {
             new (self) SelectorHolder{make_selector(spec, static_cast<std::uint64_t>(seed))};
           })
      .def_static("of_python", python_selector)
      .def("filter", filter_of)
      .def_prop_ro(
          "granularity",
          [](const SelectorHolder& self) { return format_value(self.get().default_granularity()); })
      .def_prop_ro("idle", [](const SelectorHolder& self) { return self.get().idle(); })
      .def_prop_ro("probe", [](const SelectorHolder& self) {
        const Spec spec = self.get().probe();
        return spec.name.empty() ? std::string() : spec.to_string();
      });
}

}  // namespace gala::python
