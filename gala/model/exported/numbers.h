#pragma once
#include <ATen/core/ivalue.h>

#include <span>
#include <string_view>

namespace gala::exported {

/// Arithmetic on sizes, as Python's `operator` does it: whole numbers, reals and truth values.
using NumberOperation = c10::IValue (*)(std::span<const c10::IValue> inputs);

/// The operation of a target such as `_operator.floordiv`, and how many inputs it takes; no operation for
/// a target that is none.
struct FoundOperation {
  NumberOperation operation = nullptr;
  std::size_t inputs = 0;
};
FoundOperation find_number_operation(std::string_view target);

}  // namespace gala::exported
