#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "gala/base/spec.h"

namespace nb = nanobind;

NB_MODULE(_core, m) {
  m.doc() = "The numeric heart of gala: what comes after backward, over plain pointers.";
  m.def("canonical_spec", [](const std::string& text) { return gala::Spec::parse(text).to_string(); });
}
