#include <nanobind/ndarray.h>

#include "gala/optim/host_workspace.h"
#include "python/src/make_workspace.h"

namespace gala::python {

std::unique_ptr<Workspace> make_workspace(int threads, int) {
  return std::make_unique<HostWorkspace>(threads);
}

void set_stream(Workspace&, void*) {}

int memory_kind() {
  return nanobind::device::cpu::value;
}

}  // namespace gala::python
