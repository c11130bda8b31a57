#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "gala/method/method_options.h"

namespace gala {

/// Everything that decides the result of one adaptation run, and nothing that does not: no folder, no
/// device, no number of threads. The method has every default decided and its parts are specs with every
/// option written out, so that equal runs have equal specs.
struct RunSpec : MethodOptions {
  /// Names no method: a record made from a trace may not know it.
  RunSpec() : MethodOptions{.loss = "", .select = "", .optimizer = "", .guard = ""} {}

  std::string protocol;
  std::string model;                                   ///< the network
  nlohmann::json training = nlohmann::json::object();  ///< where its weights come from
  std::string data;                                    ///< what is adapted to
  std::string stream;
  std::int64_t batch_size = 0;
  bool restart_at_borders = false;  ///< back to the source where a domain ends
  std::string precision;

  nlohmann::ordered_json to_json() const;
  /// Throws Error, naming the field, when one is missing or of another type.
  static RunSpec from_json(const nlohmann::json& json);
  bool operator==(const RunSpec&) const = default;
};

/// The name of a run: 32 hexadecimal digits over spec and data. The weights' own hash is left out:
/// training again from the same plan and seed is the same run.
std::string run_key(const RunSpec& spec, const std::string& data_hash);

}  // namespace gala
