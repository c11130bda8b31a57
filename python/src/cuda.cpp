// The heart for a GPU, a module of its own: it holds CUDA's runtime, and is loaded only where a tensor of
// a GPU comes.
#include <nanobind/nanobind.h>

#include "gala/base/error.h"
#include "python/src/bind.h"

namespace nb = nanobind;

NB_MODULE(_cuda, m) {
  m.doc() = "The numeric heart of gala on a GPU.";
  // One kind of error, whichever module it comes from.
  nb::object error = nb::module_::import_("gala_tta._core").attr("Error");
  nb::register_exception_translator(
      [](const std::exception_ptr& thrown, void* kind) {
        try {
          std::rethrow_exception(thrown);
        } catch (const gala::Error& problem) {
          PyErr_SetString(static_cast<PyObject*>(kind), problem.what());
        }
      },
      error.release().ptr());
  gala::python::bind_selector(m);
  gala::python::bind_stepper(m);
  gala::python::bind_cuda_views(m);
  gala::python::bind_cuda_norms(m);
}
