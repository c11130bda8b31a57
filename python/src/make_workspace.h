#pragma once
#include <memory>

#include "gala/optim/workspace.h"

namespace gala::python {

/// The memory and the workers of one device. `threads` is for the host, `device` the number of a GPU.
/// There is one of these in each module: _core has the host's, _cuda a GPU's.
std::unique_ptr<Workspace> make_workspace(int threads, int device);

/// Has later work queued on this stream (cudaStream_t), which is the one that PyTorch uses; nothing on the
/// host.
void set_stream(Workspace& workspace, void* stream);

/// The name that DLPack has for the device.
int memory_kind();

}  // namespace gala::python
