#pragma once
// A network as torch.export.save writes it, made piece by piece, so that each piece can be wrong.
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "weight_files.h"

namespace gala::testing {

inline constexpr const char* kExportedProgram = R"json({
  "schema_version": {"major": 8, "minor": 20},
  "range_constraints": {"s0": {"min_val": 0, "max_val": null}},
  "graph_module": {
    "graph": {
      "inputs": [{"as_tensor": {"name": "p"}}, {"as_tensor": {"name": "x"}}],
      "outputs": [{"as_tensor": {"name": "linear"}}],
      "nodes": [
        {"name": "mean", "target": "torch.ops.aten.mean.dim", "metadata": {},
         "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "x"}}},
                    {"name": "dim", "arg": {"as_ints": [2, 3]}}],
         "outputs": [{"as_tensor": {"name": "mean"}}]},
        {"name": "linear", "target": "torch.ops.aten.linear.default", "metadata": {},
         "inputs": [{"name": "input", "arg": {"as_tensor": {"name": "mean"}}},
                    {"name": "weight", "arg": {"as_tensor": {"name": "p"}}}],
         "outputs": [{"as_tensor": {"name": "linear"}}]}],
      "tensor_values": {
        "x": {"dtype": 7, "sizes": [{"as_expr": {"expr_str": "Symbol('s0', integer=True)"}},
                                    {"as_int": 3}, {"as_int": 4}, {"as_int": 4}]},
        "mean": {"dtype": 7, "sizes": [{"as_expr": {"expr_str": "s0"}}, {"as_int": 3}]},
        "linear": {"dtype": 7, "sizes": [{"as_expr": {"expr_str": "s0"}}, {"as_int": 2}]}}},
    "signature": {
      "input_specs": [{"parameter": {"arg": {"name": "p"}, "parameter_name": "fc.weight"}},
                      {"user_input": {"arg": {"as_tensor": {"name": "x"}}}}],
      "output_specs": [{"user_output": {"arg": {"as_tensor": {"name": "linear"}}}}]}}})json";

inline constexpr const char* kExportedWeights = R"json({"config": {"fc.weight": {
  "path_name": "weight_0", "is_param": true, "use_pickle": false,
  "tensor_meta": {"dtype": 7, "sizes": [{"as_int": 2}, {"as_int": 3}],
                  "strides": [{"as_int": 3}, {"as_int": 1}], "storage_offset": {"as_int": 0},
                  "layout": 7, "requires_grad": true, "device": {"type": "cuda", "index": 0}}}}})json";

/// The mean over all places and a linear layer with two classes: logit 0 is the red, logit 1 twice the
/// blue.
struct ExportedFile {
  nlohmann::json program = nlohmann::json::parse(kExportedProgram),
                 weights = nlohmann::json::parse(kExportedWeights),
                 constants = {{"config", nlohmann::json::object()}};
  std::string metadata = {};
  std::map<std::string, std::string> bytes;
  ZipLie lie = {};  ///< about the weight
  std::string root = "net/";

  ExportedFile() {
    const std::vector<float> weight = {1, 0, 0, 0, 0, 2};
    bytes["weight_0"] = {reinterpret_cast<const char*>(weight.data()), 24};
  }

  nlohmann::json& graph() { return program["graph_module"]["graph"]; }
  nlohmann::json& nodes() { return graph()["nodes"]; }
  nlohmann::json& weight() { return weights["config"]["fc.weight"]; }

  std::string write() const {
    ZipBuilder zip;
    zip.add(root + "archive_format", "pt2").add(root + "models/model.json", program.dump());
    zip.add(root + "data/weights/model_weights_config.json", weights.dump());
    zip.add(root + "data/constants/model_constants_config.json", constants.dump());
    for (const auto& [name, content] : bytes) zip.add(root + "data/weights/" + name, content, lie);
    if (!metadata.empty()) zip.add(root + "extra/gala.json", metadata);
    return zip.finish();
  }
};

}  // namespace gala::testing
