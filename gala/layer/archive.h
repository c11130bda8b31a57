#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "gala/base/error.h"
#include "gala/layer/memory.h"

namespace gala {

/// What the parts of a step remember, by name: a part tells it once, and that is how it is saved and
/// how it is loaded. Every part uses names that begin with its own.
class Archive {
 public:
  virtual ~Archive() = default;

  /// Whether the parts are given what was saved; else they give.
  virtual bool loads() const = 0;
  /// A buffer of the arena's layout, kept tensor by tensor under `prefix` + name.
  virtual void buffer(const std::string& prefix, const Memory& memory) = 0;
  /// A new buffer of that layout, for a part that is given more than it holds.
  virtual Memory make_buffer() = 0;
  /// A plain value. Throws Error where it is missing or of another kind.
  template <class T>
  void value(const std::string& name, T& value) {
    nlohmann::json json;
    if (!loads()) json = value;
    exchange(name, json);
    if (!loads()) return;
    try {
      json.get_to(value);
    } catch (const nlohmann::json::exception&) {
      throw Error("the value " + name + " is not of the kind that it should be");
    }
  }

 protected:
  virtual void exchange(const std::string& name, nlohmann::json& value) = 0;
};

}  // namespace gala
