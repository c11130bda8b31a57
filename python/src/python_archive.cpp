#include "python/src/python_archive.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include "python/src/make_workspace.h"

namespace nb = nanobind;

namespace gala::python {

void PythonArchive::buffer(const std::string& prefix, const Memory& memory) {
  using Buffer = nb::ndarray<nb::pytorch, float, nb::ndim<1>>;
  // A copy of the holder keeps the memory for as long as Python looks at it.
  auto* holder = new Memory(memory);
  const nb::capsule owner(holder, [](void* held) noexcept { delete static_cast<Memory*>(held); });
  const std::size_t shape[] = {static_cast<std::size_t>(size_)};
  Buffer array(memory.data(), 1, shape, owner, nullptr, nb::dtype<float>(), memory_kind(), device_);
  target_.attr("buffer")(prefix, nb::cast(array, nb::rv_policy::reference));
}

Memory PythonArchive::make_buffer() {
  nb::object tensor = target_.attr("make_buffer")();
  auto* begin = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(tensor.attr("data_ptr")()));
  auto* held = new nb::object(std::move(tensor));
  const auto release = [held](void*) {
    const nb::gil_scoped_acquire hold;
    delete held;
  };
  return {std::shared_ptr<void>(begin, release), size_ * static_cast<std::int64_t>(sizeof(float))};
}

void PythonArchive::exchange(const std::string& name, nlohmann::json& value) {
  nb::object given = loads() ? nb::none() : nb::cast(value.dump());
  const auto text = nb::cast<std::string>(target_.attr("exchange")(name, given));
  if (loads()) value = nlohmann::json::parse(text);
}

}  // namespace gala::python
