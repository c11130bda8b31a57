#include "gala/model/preprocessing.h"

#include <algorithm>
#include <cmath>

#include "gala/base/error.h"
#include "gala/base/spec.h"

namespace gala {
namespace {

using nlohmann::json;

constexpr std::int64_t kLargestSize = 4096;

const json& field(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) fail<ConfigError>("preprocessing: \"{}\" is missing", name);
  return *found;
}

std::array<double, 3> three_numbers(const json& object, const char* name) {
  const json& list = field(object, name);
  if (!list.is_array() || list.size() != 3 ||
      !std::all_of(list.begin(), list.end(), [](const json& item) { return item.is_number(); })) {
    fail<ConfigError>("preprocessing: \"{}\" must be a list of three numbers", name);
  }
  return {list[0].get<double>(), list[1].get<double>(), list[2].get<double>()};
}

std::string one_of(const json& object, const char* name, const std::vector<std::string>& accepted) {
  const json& value = field(object, name);
  if (value.is_string()) {
    auto text = value.get<std::string>();
    if (std::find(accepted.begin(), accepted.end(), text) != accepted.end()) return text;
  }
  fail<ConfigError>("preprocessing: \"{}\" must be one of {}", name, fmt::join(accepted, ", "));
}

void refuse_unknown_fields(const json& object) {
  static const std::vector<std::string> kFields = {"mean", "std", "size", "interpolation",
                                                   "channels"};
  for (const auto& [name, value] : object.items()) {
    if (std::find(kFields.begin(), kFields.end(), name) == kFields.end()) {
      fail<ConfigError>("preprocessing: unknown field \"{}\"{}", name, suggestion(name, kFields));
    }
  }
}

}  // namespace

Preprocessing Preprocessing::imagenet() {
  Preprocessing result;
  result.mean = {0.485, 0.456, 0.406};
  result.std = {0.229, 0.224, 0.225};
  return result;
}

Preprocessing Preprocessing::from_json(const json& object) {
  if (!object.is_object()) fail<ConfigError>("preprocessing: must be a JSON object");
  refuse_unknown_fields(object);
  Preprocessing result;
  result.mean = three_numbers(object, "mean");
  result.std = three_numbers(object, "std");
  for (const double value : result.mean) {
    if (!std::isfinite(value)) fail<ConfigError>("preprocessing: \"mean\" must be finite");
  }
  for (const double value : result.std) {
    if (!std::isfinite(value) || value <= 0) {
      fail<ConfigError>("preprocessing: \"std\" must be above 0, not {}", value);
    }
  }
  const json& size = field(object, "size");
  // Compared as doubles, so that no value is cut to fit on the way.
  if (!size.is_number_integer() || size.get<double>() < 1 || size.get<double>() > kLargestSize) {
    fail<ConfigError>("preprocessing: \"size\" must be a whole number from 1 to {}", kLargestSize);
  }
  result.size = size.get<std::int64_t>();
  result.interpolation = one_of(object, "interpolation", {"nearest", "bilinear", "bicubic"});
  result.channels = one_of(object, "channels", {"rgb", "bgr"});
  return result;
}

json Preprocessing::to_json() const {
  return {{"mean", mean},
          {"std", std},
          {"size", size},
          {"interpolation", interpolation},
          {"channels", channels}};
}

}  // namespace gala
