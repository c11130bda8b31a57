// Networks that torch.export.save wrote.
#include <nlohmann/json.hpp>

#include "fuzz/scratch.h"
#include "gala/base/json.h"
#include "gala/model/exported/exported_model.h"
#include "tests/model/zip_builder.h"

namespace gala::fuzz {
namespace {

using gala::testing::ZipBuilder;
using nlohmann::json;

void read_network(const Scratch& scratch, std::string_view bytes) {
  const auto path = scratch.write("net.pt2", bytes);
  // It has answered a batch of zeros when it is made.
  accepted([&] {
    const ExportedModel model({.path = path.string()});
    require(model.classes() > 1, "a classifier without classes");
  });
}

/// What the archive says of the tensors of a graph: each as large as the graph has it, all ones.
class Weights {
 public:
  /// Nothing is added for what is no graph.
  void add_all_of(const json& program) {
    for (const json& spec : program.at("graph_module").at("signature").at("input_specs")) {
      for (const char* kind : {"parameter", "buffer", "tensor_constant"}) {
        if (!spec.contains(kind)) continue;
        const std::string name = spec.at(kind).at(std::string(kind) + "_name");
        const std::string value = spec.at(kind).at("arg").at("name");
        add(name, program.at("graph_module").at("graph").at("tensor_values").at(value));
      }
    }
  }
  std::string config() const { return json{{"config", config_}}.dump(); }
  std::string values() const { return values_; }

 private:
  void add(const std::string& name, const json& tensor) {
    json meta = {{"dtype", tensor.at("dtype")}, {"layout", 7},
                 {"requires_grad", false},      {"storage_offset", {{"as_int", 0}}},
                 {"sizes", json::array()},      {"strides", json::array()}};
    std::int64_t count = 1;
    const json& sizes = tensor.at("sizes");
    for (std::size_t i = sizes.size(); i-- > 0;) {
      const std::int64_t size = sizes.at(i).at("as_int");
      meta["sizes"].insert(meta["sizes"].begin(), json{{"as_int", size}});
      meta["strides"].insert(meta["strides"].begin(), json{{"as_int", count}});
      if (size < 0 || size > kMost / std::max<std::int64_t>(count, 1)) return;
      count *= size;
    }
    config_[name] = {{"path_name", "ones"}, {"use_pickle", false}, {"tensor_meta", meta}};
  }

  static constexpr std::int64_t kMost = 4096;
  json config_ = json::object();
  std::string values_ = [] {
    const std::vector<float> ones(kMost, 1.0F);
    return std::string(reinterpret_cast<const char*>(ones.data()), kMost * sizeof(float));
  }();
};

}  // namespace

void exported(Bytes bytes) {
  static const Scratch scratch;
  read_network(scratch, as_text(bytes));
}

/// The graph alone, in a whole archive with the tensors that it names.
void exported_graph(Bytes bytes) {
  static const Scratch scratch;
  Weights weights;
  try {
    weights.add_all_of(try_parse_json(as_text(bytes)));
  } catch (const json::exception&) {
    // Then they are missing.
  }
  ZipBuilder file;
  file.add("net/archive_format", "pt2").add("net/models/model.json", as_text(bytes));
  file.add("net/data/weights/model_weights_config.json", weights.config());
  file.add("net/data/constants/model_constants_config.json", weights.config());
  for (const char* folder : {"weights", "constants"}) {
    file.add(std::string("net/data/") + folder + "/ones", weights.values());
  }
  read_network(scratch, file.finish());
}

}  // namespace gala::fuzz
