#pragma once
#include <nanobind/nanobind.h>

namespace gala::python {

// One function for each subject, called by module.cpp.

}  // namespace gala::python
