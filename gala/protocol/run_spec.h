#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace gala {

/// Everything that decides the result of one adaptation run, and nothing that does not: no folder, no
/// device, no number of threads. Parts are specs with every option written out, so that equal runs
/// have equal specs.
struct RunSpec {
  std::string protocol;
  std::string model;                                   ///< the network
  nlohmann::json training = nlohmann::json::object();  ///< where its weights come from
  std::string data;                                    ///< what is adapted to
  std::string stream;
  std::string loss;
  std::string select;
  std::string optimizer;
  std::string norm;
  std::string partition;  ///< "tensor", "module" or "block"
  std::string head;       ///< "adapt" or "freeze"
  std::vector<std::string> include;
  std::vector<std::string> exclude;
  std::int64_t batch_size = 0;
  std::int64_t inner_steps = 1;
  std::int64_t adapt_every = 1;
  bool episodic = false;
  bool restart_at_borders = false;  ///< back to the source where a domain ends
  std::string predict;              ///< "adapting" or "after"
  std::string precision;
  std::string guard;
  std::int64_t seed = 0;

  /// Calls `field(name, member)` for every member, in the order of records.
  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& field);

  nlohmann::ordered_json to_json() const;
  /// Throws Error, naming the field, when one is missing or of another type.
  static RunSpec from_json(const nlohmann::json& json);
  bool operator==(const RunSpec&) const = default;
};

/// The name of a run: 32 hexadecimal digits over spec and data. The weights' own hash is left out:
/// training again from the same plan and seed is the same run.
std::string run_key(const RunSpec& spec, const std::string& data_hash);

template <class Self, class Visitor>
void RunSpec::visit(Self& self, Visitor&& field) {
  field("protocol", self.protocol);
  field("model", self.model);
  field("training", self.training);
  field("data", self.data);
  field("stream", self.stream);
  field("loss", self.loss);
  field("select", self.select);
  field("optimizer", self.optimizer);
  field("norm", self.norm);
  field("partition", self.partition);
  field("head", self.head);
  field("include", self.include);
  field("exclude", self.exclude);
  field("batch_size", self.batch_size);
  field("inner_steps", self.inner_steps);
  field("adapt_every", self.adapt_every);
  field("episodic", self.episodic);
  field("restart_at_borders", self.restart_at_borders);
  field("predict", self.predict);
  field("precision", self.precision);
  field("guard", self.guard);
  field("seed", self.seed);
}

}  // namespace gala
