#pragma once
#include <memory>

#include "gala/device/work_queue.h"

namespace gala {

/// A stream of its own and captured graphs; null for other devices, or where this library was built
/// without CUDA.
std::unique_ptr<WorkQueue> make_cuda_queue(at::Device device);

}  // namespace gala
