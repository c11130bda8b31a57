#include "gala/model/exported/schema.h"

#include <limits>

namespace gala::exported {

std::optional<c10::ScalarType> scalar_type(std::int64_t number) {
  switch (number) {
    case 1:
      return c10::ScalarType::Byte;
    case 2:
      return c10::ScalarType::Char;
    case 3:
      return c10::ScalarType::Short;
    case 4:
      return c10::ScalarType::Int;
    case 5:
      return c10::ScalarType::Long;
    case 6:
      return c10::ScalarType::Half;
    case 7:
      return c10::ScalarType::Float;
    case 8:
      return c10::ScalarType::Double;
    case 12:
      return c10::ScalarType::Bool;
    case 13:
      return c10::ScalarType::BFloat16;
    default:
      return std::nullopt;
  }
}

std::optional<c10::Layout> layout(std::int64_t number) {
  constexpr std::int64_t kStridedNumber = 7;
  if (number == kStridedNumber) return c10::Layout::Strided;
  return std::nullopt;
}

std::optional<c10::MemoryFormat> memory_format(std::int64_t number) {
  switch (number) {
    case 1:
      return c10::MemoryFormat::Contiguous;
    case 2:
      return c10::MemoryFormat::ChannelsLast;
    case 3:
      return c10::MemoryFormat::ChannelsLast3d;
    case 4:
      return c10::MemoryFormat::Preserve;
    default:
      return std::nullopt;
  }
}

std::pair<std::string, const nlohmann::json&> unpack(const nlohmann::json& value) {
  const auto& object = value.get_ref<const nlohmann::json::object_t&>();
  // Other writers put the names of the other kinds beside it, with null.
  for (const auto& [kind, content] : object) {
    if (!content.is_null()) return {kind, content};
  }
  return {"nothing", value};
}

double real_number(const nlohmann::json& value) {
  if (!value.is_string()) return value.get<double>();
  const auto& text = value.get_ref<const std::string&>();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (text == "Infinity") return kInfinity;
  if (text == "-Infinity") return -kInfinity;
  return std::numeric_limits<double>::quiet_NaN();
}

std::pair<std::string, std::string> operator_name(const std::string& target) {
  constexpr std::string_view kBegin = "torch.ops.";
  if (!target.starts_with(kBegin)) return {};
  const std::string rest = target.substr(kBegin.size());
  const auto first = rest.find('.'), last = rest.rfind('.');
  if (first == std::string::npos || first == last) return {};
  const std::string overload = rest.substr(last + 1);
  return {rest.substr(0, first) + "::" + rest.substr(first + 1, last - first - 1),
          overload == "default" ? "" : overload};
}

ModuleOfNode module_of(const nlohmann::json& node) {
  const std::string stack = node.at("metadata").value("nn_module_stack", "");
  // Entries "key,path,class" with semicolons between them.
  const std::string last = stack.substr(stack.rfind(';') + 1);
  const auto first_comma = last.find(','), last_comma = last.rfind(',');
  if (first_comma == last_comma) return {};
  std::string path = last.substr(first_comma + 1, last_comma - first_comma - 1);
  path = path.substr(0, path.find('@'));  // a module that is called again is path@1
  const std::string type = last.substr(last_comma + 1);
  return {path, type.substr(type.rfind('.') + 1)};
}

}  // namespace gala::exported
