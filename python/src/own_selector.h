#pragma once
#include <nanobind/nanobind.h>

#include "gala/select/selector.h"

namespace gala::python {

/// A selector before the stepper takes it.
struct SelectorHolder {
  std::unique_ptr<Selector> selector;

  Selector& get() const {
    if (!selector) fail("the selector was given away to a stepper already");
    return *selector;
  }
};

}  // namespace gala::python
