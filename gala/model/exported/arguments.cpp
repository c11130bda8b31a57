#include "gala/model/exported/arguments.h"

#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>
#include <ATen/core/jit_type.h>

#include <algorithm>

#include "gala/base/error.h"
#include "gala/model/exported/schema.h"

namespace gala::exported {
namespace {

using nlohmann::json;

/// What an operator takes, without the "or nothing".
struct Wanted {
  c10::TypeKind kind;
  c10::TypeKind element = c10::TypeKind::AnyType;  ///< of a list
  bool missing_elements = false;                   ///< of a list: some may be missing
  std::int64_t length = 1;                         ///< of a list, where one number may stand for it
};

c10::TypePtr without_optional(const c10::TypePtr& type) {
  const auto* optional = type->castRaw<c10::OptionalType>();
  return optional ? optional->getElementType() : type;
}

Wanted what_is_wanted(const c10::Argument& argument) {
  const c10::TypePtr type = without_optional(argument.type());
  Wanted wanted{type->kind()};
  if (const auto* list = type->castRaw<c10::ListType>()) {
    const c10::TypePtr element = list->getElementType();
    wanted.element = without_optional(element)->kind();
    wanted.missing_elements = element->kind() == c10::TypeKind::OptionalType;
    wanted.length = std::max<std::int64_t>(1, argument.N().value_or(1));
  }
  return wanted;
}

Input number_input(const c10::IValue& number, const Wanted& wanted) {
  if (wanted.kind == c10::TypeKind::TensorType) {
    at::Tensor tensor = at::scalar_to_tensor(number.toScalar());
    tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
    return Constant{tensor};
  }
  if (wanted.kind == c10::TypeKind::FloatType && number.isInt()) {
    return Constant{static_cast<double>(number.toInt())};
  }
  if (wanted.kind != c10::TypeKind::ListType) return Constant{number};
  if (wanted.element == c10::TypeKind::FloatType) {
    const auto value = number.toScalar().toDouble();
    return Constant{std::vector<double>(static_cast<std::size_t>(wanted.length), value)};
  }
  return Constant{
      std::vector<std::int64_t>(static_cast<std::size_t>(wanted.length), number.toInt())};
}

Input number_list(const json& list, const Wanted& wanted) {
  if (wanted.element == c10::TypeKind::FloatType) {
    std::vector<double> numbers;
    for (const json& item : list) numbers.push_back(real_number(item));
    return Constant{numbers};
  }
  return Constant{list.get<std::vector<std::int64_t>>()};
}

/// A number that has a name and is known only when the program runs, or that is known now.
Input symbol_input(const json& symbol, const Wanted& wanted, const FindPlace& place_of) {
  const auto [kind, value] = unpack(symbol);
  if (kind == "as_name") {
    const Place place = place_of(value.get<std::string>());
    if (wanted.kind == c10::TypeKind::TensorType) return NumberAsTensor{place};
    if (wanted.kind == c10::TypeKind::ListType) {
      return Numbers{{static_cast<std::size_t>(wanted.length), Value{place}}};
    }
    return Value{place};
  }
  if (kind == "as_bool") return number_input(value.get<bool>(), wanted);
  if (kind == "as_float") return number_input(real_number(value), wanted);
  return number_input(value.get<std::int64_t>(), wanted);
}

Input symbol_list(const json& list, const FindPlace& place_of) {
  Numbers numbers;
  std::vector<std::int64_t> known;
  for (const json& item : list) {
    const auto [kind, value] = unpack(item);
    if (kind == "as_name") {
      numbers.items.emplace_back(Value{place_of(value.get<std::string>())});
    } else {
      known.push_back(value.get<std::int64_t>());
      numbers.items.emplace_back(known.back());
    }
  }
  if (known.size() == numbers.items.size()) return Constant{known};
  return numbers;
}

Input tensor_list(const json& list, bool optional, const FindPlace& place_of) {
  Tensors tensors{{}, optional};
  for (const json& item : list) {
    // In a list of optional tensors each is a union, else it is the tensor itself.
    const json* tensor = &item;
    if (!item.contains("name")) {
      const auto [kind, value] = unpack(item);
      tensor = kind == "as_tensor" ? &value : nullptr;
    }
    if (!tensor && !optional) fail("a tensor is missing in a list of them");
    tensors.items.push_back(tensor ? std::optional(place_of(tensor->at("name").get<std::string>()))
                                   : std::nullopt);
  }
  return tensors;
}

template <class T>
Constant schema_number(const std::optional<T>& found, const std::string& kind, const json& value) {
  if (!found) fail("{} {} is not known", kind.substr(3), value.dump());
  return Constant{static_cast<std::int64_t>(*found)};
}

}  // namespace

Input read_argument(const json& argument, const c10::Argument& argument_wanted,
                    const FindPlace& place_of) {
  const Wanted wanted = what_is_wanted(argument_wanted);
  const auto [kind, value] = unpack(argument);
  if (kind == "as_none") return Constant{};
  if (kind == "as_tensor") return Value{place_of(value.at("name").get<std::string>())};
  if (kind == "as_optional_tensor") return read_argument(value, argument_wanted, place_of);
  if (kind == "as_tensors" || kind == "as_optional_tensors") {
    return tensor_list(value, wanted.missing_elements, place_of);
  }
  if (kind == "as_int") return number_input(value.get<std::int64_t>(), wanted);
  if (kind == "as_bool") return number_input(value.get<bool>(), wanted);
  if (kind == "as_float") return number_input(real_number(value), wanted);
  if (kind == "as_ints" || kind == "as_floats") return number_list(value, wanted);
  if (kind == "as_bools") {
    c10::List<bool> list;
    for (const json& item : value) list.push_back(item.get<bool>());
    return Constant{list};
  }
  if (kind == "as_string") return Constant{value.get<std::string>()};
  if (kind == "as_sym_int" || kind == "as_sym_bool" || kind == "as_sym_float") {
    return symbol_input(value, wanted, place_of);
  }
  if (kind == "as_sym_ints") return symbol_list(value, place_of);
  if (kind == "as_device") return ModelDevice{};
  if (kind == "as_scalar_type") {
    return schema_number(scalar_type(value.get<std::int64_t>()), kind, value);
  }
  if (kind == "as_memory_format") {
    return schema_number(memory_format(value.get<std::int64_t>()), kind, value);
  }
  if (kind == "as_layout") return schema_number(layout(value.get<std::int64_t>()), kind, value);
  fail("an argument of the kind {} is not known", kind);
}

Input default_argument(const c10::Argument& wanted) {
  if (wanted.default_value()) return Constant{*wanted.default_value()};
  if (wanted.type()->kind() == c10::TypeKind::OptionalType) return Constant{};
  fail("its argument {} is missing", wanted.name());
}

Input read_number(const json& argument, const FindPlace& place_of) {
  const auto [kind, value] = unpack(argument);
  const Wanted wanted{c10::TypeKind::NumberType};
  if (kind == "as_int") return number_input(value.get<std::int64_t>(), wanted);
  if (kind == "as_bool") return number_input(value.get<bool>(), wanted);
  if (kind == "as_float") return number_input(real_number(value), wanted);
  if (kind == "as_sym_int" || kind == "as_sym_bool" || kind == "as_sym_float") {
    return symbol_input(value, wanted, place_of);
  }
  fail("{} is no number", kind);
}

}  // namespace gala::exported
