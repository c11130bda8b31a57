#pragma once
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

namespace gala::exported {

// The words and numbers of the schema in which torch.export writes graphs (version 8). They are its own:
// a float32 is 7 there and 6 in LibTorch.

/// Nothing for a number that the schema does not have, or that no operator here takes.
std::optional<c10::ScalarType> scalar_type(std::int64_t number);
std::optional<c10::Layout> layout(std::int64_t number);
std::optional<c10::MemoryFormat> memory_format(std::int64_t number);

/// A value of a union: {"as_int": 3} is "as_int" and 3. Throws json::exception where it is none.
std::pair<std::string, const nlohmann::json&> unpack(const nlohmann::json& value);

/// A number that JSON may hold as a text: "Infinity", "-Infinity", "NaN".
double real_number(const nlohmann::json& value);

/// "aten::conv2d" and "" for torch.ops.aten.conv2d.default; empty names for another target.
std::pair<std::string, std::string> operator_name(const std::string& target);

/// The module in which a node was recorded: the innermost of its module stack.
struct ModuleOfNode {
  std::string path;        ///< "layer1.0.bn1"; "" is the network itself
  std::string class_name;  ///< without what stands before it: "BatchNorm2d"
};
ModuleOfNode module_of(const nlohmann::json& node);

}  // namespace gala::exported
