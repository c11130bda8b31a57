#include "gala/tensor/state_archive.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "gala/base/error.h"
#include "gala/tensor/torch_workspace.h"

namespace gala {

void StateArchive::buffer(const std::string& prefix, const Memory& memory) {
  at::Tensor buffer = arena_.as_buffer(memory);
  loads() ? arena_.load(buffer, prefix, *loaded_) : arena_.save(buffer, prefix, *saved_);
}

Memory StateArchive::make_buffer() {
  return hold(arena_.make_buffer());
}

void StateArchive::tensor(const std::string& name, at::Tensor& tensor) {
  const c10::NoGradGuard no_grad;
  if (!loads()) {
    if (saved_->tensors.contains(name)) fail("two parts call their state {}", name);
    saved_->tensors[name] = tensor.detach().to(at::kCPU).clone(at::MemoryFormat::Contiguous);
    return;
  }
  const auto found = loaded_->tensors.find(name);
  if (found == loaded_->tensors.end()) fail("the state lacks {}", name);
  if (found->second.sizes() != tensor.sizes()) fail("the state holds {} in another shape", name);
  tensor.copy_(found->second);
}

void StateArchive::exchange(const std::string& name, nlohmann::json& value) {
  if (!loads()) {
    if (!saved_->values.emplace(name, value).second) fail("two parts call their state {}", name);
    return;
  }
  const auto found = loaded_->values.find(name);
  if (found == loaded_->values.end()) fail("the state lacks {}", name);
  value = *found;
}

}  // namespace gala
