#pragma once
#include <nanobind/nanobind.h>

namespace gala::python {

// One function for each subject, called by module.cpp and, where it has to do with a device, by cuda.cpp.
void bind_parts(nanobind::module_& m);   ///< names, options and defaults: bind_parts.cpp
void bind_layers(nanobind::module_& m);  ///< which parameters move, in which layers
void bind_selector(nanobind::module_& m);
void bind_stepper(nanobind::module_& m);
void bind_guard(nanobind::module_& m);
void bind_views(nanobind::module_& m);
void bind_streams(nanobind::module_& m);
void bind_cuda_views(nanobind::module_& m);
void bind_cuda_norms(nanobind::module_& m);

}  // namespace gala::python
