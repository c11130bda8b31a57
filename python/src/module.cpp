#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "gala/base/spec.h"
#include "python/src/bind.h"

namespace nb = nanobind;

NB_MODULE(_core, m) {
  m.doc() = "The numeric heart of gala: what comes after backward, over plain pointers.";
  m.def("canonical_spec",
        [](const std::string& text) { return gala::Spec::parse(text).to_string(); });
  gala::python::bind_streams(m);
#ifdef GALA_CORRUPTIONS
  gala::python::bind_corrupt(m);
#endif
}
