#pragma once
#include <nanobind/nanobind.h>

namespace gala::python {

// One function for each subject, called by module.cpp.
void bind_streams(nanobind::module_& m);
void bind_corrupt(nanobind::module_& m);  ///< only where libjpeg was found

}  // namespace gala::python
