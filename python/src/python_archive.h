#pragma once
#include <nanobind/nanobind.h>

#include <string>

#include "gala/layer/archive.h"

namespace gala::python {

/// What a stepper remembers, handed to a Python object: `loads`, `buffer(prefix, tensor)`,
/// `make_buffer()` and `exchange(name, json text or None)`, which returns the text.
class PythonArchive : public Archive {
 public:
  PythonArchive(nanobind::object target, std::int64_t size, int device)
      : target_(std::move(target)), size_(size), device_(device) {}

  bool loads() const override { return nanobind::cast<bool>(target_.attr("loads")); }
  void buffer(const std::string& prefix, const Memory& memory) override;
  Memory make_buffer() override;

 protected:
  void exchange(const std::string& name, nlohmann::json& value) override;

 private:
  nanobind::object target_;
  std::int64_t size_;  ///< numbers in a buffer
  int device_;
};

}  // namespace gala::python
