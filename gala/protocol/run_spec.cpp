#include "gala/protocol/run_spec.h"

#include "gala/base/error.h"
#include "gala/base/hash.h"

namespace gala {

nlohmann::ordered_json RunSpec::to_json() const {
  nlohmann::ordered_json json;
  visit(*this, [&](const char* name, const auto& member) { json[name] = member; });
  return json;
}

RunSpec RunSpec::from_json(const nlohmann::json& json) {
  RunSpec spec;
  visit(spec, [&]<class T>(const char* name, T& member) {
    const auto found = json.find(name);
    if (found == json.end()) fail("spec.{} is missing", name);
    try {
      member = found->get<T>();
    } catch (const nlohmann::json::exception&) {
      fail("spec.{} cannot be {}", name, found->dump());
    }
  });
  return spec;
}

std::string run_key(const RunSpec& spec, const std::string& data_hash) {
  // A plain json sorts its keys: the text does not depend on the order of fields.
  nlohmann::json identity = spec.to_json();
  identity["data hash"] = data_hash;
  Sha256 hash;
  // Names from file systems need not be UTF-8.
  hash.update(identity.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  return hash.hex().substr(0, 32);
}

}  // namespace gala
