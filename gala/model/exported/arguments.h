#pragma once
#include <ATen/core/function_schema.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "gala/model/exported/program.h"

namespace gala::exported {

/// The place of a value by its name in the file; throws where nothing made it yet.
using FindPlace = std::function<Place(const std::string& name)>;

/// An argument as the operator takes it: whole numbers where it takes reals become reals, one number
/// where it takes a list becomes a list, a number where it takes a tensor becomes one. Throws Error for
/// a kind of argument that is not known here, and json::exception for one that is not as it should be.
Input read_argument(const nlohmann::json& argument, const c10::Argument& wanted,
                    const FindPlace& place_of);

/// What an argument that the file leaves out is: its default. Throws Error where there is none.
Input default_argument(const c10::Argument& wanted);

/// An operand of arithmetic on sizes.
Input read_number(const nlohmann::json& argument, const FindPlace& place_of);

}  // namespace gala::exported
