#include "gala/protocol/run_spec.h"

#include "gala/base/error.h"
#include "gala/base/hash.h"

namespace gala {
namespace {

/// Calls `field(name, member)` for every member beside the method's, in the order of records.
template <class Self, class Visitor>
void visit_fields(Self& self, Visitor&& field) {
  field("protocol", self.protocol);
  field("model", self.model);
  field("training", self.training);
  field("data", self.data);
  field("stream", self.stream);
  field("batch_size", self.batch_size);
  field("restart_at_borders", self.restart_at_borders);
  field("precision", self.precision);
}

}  // namespace

nlohmann::ordered_json RunSpec::to_json() const {
  nlohmann::ordered_json json;
  visit_fields(*this, [&](const char* name, const auto& member) { json[name] = member; });
  add_to_record(*this, json);
  return json;
}

RunSpec RunSpec::from_json(const nlohmann::json& json) {
  RunSpec spec;
  visit_fields(spec, [&]<class T>(const char* name, T& member) {
    const auto found = json.find(name);
    if (found == json.end()) fail("spec.{} is missing", name);
    try {
      member = found->get<T>();
    } catch (const nlohmann::json::exception&) {
      fail("spec.{} cannot be {}", name, found->dump());
    }
  });
  static_cast<MethodOptions&>(spec) = method_from_json(json);
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
