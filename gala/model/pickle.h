#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gala {

/// What a Python pickle describes, as data: nothing is imported, called or built. Values refer to
/// each other by index, so shared and circular references are plain, and nothing here recurses.
struct Pickle {
  using Id = std::uint32_t;
  enum class Kind {
    kOther,       ///< None, booleans, floats, bytes, sets, very long integers: there, but not kept
    kInteger,     ///< `integer`
    kText,        ///< `text`
    kList,        ///< `items`
    kTuple,       ///< `items`
    kDict,        ///< `items`: key, value, key, value, ...; also an OrderedDict
    kGlobal,      ///< `items`: the names of a module and of a thing in it
    kObject,      ///< `items`: what would be called, its arguments, then key, value, ... set on it
    kPersistent,  ///< `items`: one value that names something outside
  };
  struct Value {
    Kind kind = Kind::kOther;
    std::int64_t integer = 0;
    std::string_view text;  ///< points into the bytes that were read
    std::vector<Id> items;
  };

  std::vector<Value> values;
  Id root = 0;

  const Value& operator[](Id id) const { return values[id]; }
  /// "module.name" of a global or of what an object is made by; "" for anything else.
  std::string global_name(Id id) const;
  bool is_global(Id id, std::string_view module, std::string_view name) const;
  /// The keys and values of a dictionary or of an object that had some set; else none.
  std::span<const Id> entries(Id id) const;
};

/// Reads protocols 2 to 5. `bytes` must outlive the result; `path` is for messages. Throws
/// FormatError for anything malformed, and for more than four million values.
Pickle read_pickle(const std::string& path, std::string_view bytes);

}  // namespace gala
