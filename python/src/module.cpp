#include <nanobind/nanobind.h>

#include "gala/base/error.h"
#include "python/src/bind.h"

namespace nb = nanobind;

NB_MODULE(_core, m) {
  m.doc() = "The numeric heart of gala: what comes after backward, over plain pointers.";
  nb::exception<gala::Error>(m, "Error", PyExc_ValueError);
  gala::python::bind_parts(m);
  gala::python::bind_layers(m);
  gala::python::bind_selector(m);
  gala::python::bind_stepper(m);
  gala::python::bind_guard(m);
  gala::python::bind_views(m);
  gala::python::bind_streams(m);
}
