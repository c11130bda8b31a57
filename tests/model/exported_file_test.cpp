// Files of torch.export.save that are damaged, of another version or beyond us. A whole one is made here
// piece by piece, without Python; every test changes one piece of it.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "exported_files.h"
#include "gala/base/error.h"
#include "gala/model/exported/numbers.h"
#include "gala/model/exported/places.h"
#include "gala/model/model.h"

namespace gala {
namespace {

using gala::testing::ZipBuilder;
using File = gala::testing::ExportedFile;
using nlohmann::json;

json tensor(const std::string& name) {
  return {{"as_tensor", {{"name", name}}}};
}
json argument(const std::string& name, const json& value) {
  return {{"name", name}, {"arg", value}, {"kind", 1}};
}
json node(const std::string& name, const std::string& target, const json& inputs,
          const json& outputs) {
  return {{"name", name},
          {"target", target},
          {"inputs", inputs},
          {"outputs", outputs},
          {"metadata", json::object()}};
}
json sizes(const std::vector<std::int64_t>& numbers) {
  json list = json::array();
  for (const auto number : numbers) list.push_back({{"as_int", number}});
  return list;
}

class ExportedFiles : public ::testing::Test {
 protected:
  std::unique_ptr<Model> open(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary) << bytes;
    return make_model(Spec("exported", {{"path", path_.string()}}));
  }
  void refuses(const std::string& bytes, const std::string& words) const {
    try {
      open(bytes);
      ADD_FAILURE() << "was not refused: " << words;
    } catch (const FormatError& error) {
      EXPECT_EQ(error.path(), path_.string());
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  }
  /// Refused after one change.
  void refuses(const std::function<void(File&)>& change, const std::string& words) const {
    File file;
    change(file);
    refuses(file.write(), words);
  }

  gala::testing::ScratchFolder folder_;
  std::filesystem::path path_ = folder_ / "net.pt2";
};

TEST_F(ExportedFiles, AWholeOneAnswers) {
  const auto model = open(File().write());
  EXPECT_EQ(model->classes(), 2);
  EXPECT_EQ(model->parameters().at(0).name, "fc.weight");
  EXPECT_TRUE(model->parameters().at(0).in_head());
  at::Tensor images = at::zeros({5, 3, 4, 4});
  images.select(1, 0).fill_(3);
  images.select(1, 2).fill_(4);
  const at::Tensor logits = model->forward(images).logits;
  EXPECT_TRUE(logits.equal(at::tensor({3.0F, 8.0F}).expand({5, 2})));
  File elsewhere;
  elsewhere.root = "another name/";
  EXPECT_EQ(open(elsewhere.write())->classes(), 2);
}

TEST_F(ExportedFiles, ZipArchives) {
  const std::string whole = File().write();
  refuses("", "is no exported network");
  refuses("once upon a time", "is no exported network: a .pt2 file is a zip archive");
  for (const std::size_t length : {5UL, 200UL, whole.size() / 2, whole.size() - 1}) {
    refuses(whole.substr(0, length), "damaged zip archive");
  }
  std::string garbled = whole;
  garbled[garbled.find("schema_version")] = 'X';
  refuses(garbled, "checksum");
  refuses(ZipBuilder().add("hello", "there").finish(), "not one of torch.export.save");
  refuses(ZipBuilder().add("a/data.pkl", "").finish(), "is a PyTorch checkpoint");
  refuses(ZipBuilder().add("serialized_exported_program.json", "{}").finish(),
          "written by an older torch.export.save");
  refuses(ZipBuilder().add("a/archive_format", "pt2").finish(), "holds no graph");
}

TEST_F(ExportedFiles, Versions) {
  refuses([](File& file) { file.program["schema_version"]["major"] = 9; },
          "version 9 of the schema, newer than the one that is read (8): a newer gala is needed");
  refuses([](File& file) { file.program["schema_version"]["major"] = 7; }, "older");
  refuses([](File& file) { file.program.erase("schema_version"); }, "schema_version");
}

TEST_F(ExportedFiles, Weights) {
  refuses([](File& file) { file.bytes.clear(); }, "the values of \"fc.weight\" are missing");
  refuses([](File& file) { file.weights["config"].clear(); },
          "the values of \"fc.weight\" are missing");
  refuses([](File& file) { file.weight()["use_pickle"] = true; }, "stored as a pickle");
  refuses([](File& file) { file.weight()["tensor_meta"]["dtype"] = 6; },
          "\"fc.weight\" is Half, and float32 is needed");
  refuses([](File& file) { file.weight()["tensor_meta"]["dtype"] = 99; }, "type of numbers");
  refuses([](File& file) { file.weight()["tensor_meta"]["layout"] = 1; }, "not a dense tensor");
  refuses(
      [](File& file) {
        file.weight()["tensor_meta"]["sizes"] = sizes({3, 3});
      },
      "does not lie within the 24 bytes");
  refuses(
      [](File& file) {
        file.weight()["tensor_meta"]["strides"] = sizes({1L << 62, 1});
      },
      "does not lie within");
  refuses(
      [](File& file) {
        file.weight()["tensor_meta"]["storage_offset"] = {{"as_int", -4}};
      },
      "does not lie within");
  refuses([](File& file) { file.weight()["tensor_meta"].erase("sizes"); }, "sizes");
  // Four bytes of ones are not a number.
  refuses([](File& file) { std::fill_n(file.bytes["weight_0"].begin() + 4, 4, '\xff'); },
          "not finite");
  File packed;
  // Six zeros, deflated.
  packed.bytes["weight_0"] = std::string("\x63\x60\xa0\x1e\x00\x00", 6);
  packed.lie = {
      .checksum = gala::testing::crc32_of(std::string(24, '\0')), .size = 24, .method = 8};
  refuses(packed.write(), "\"fc.weight\" is compressed");
}

/// What would look beyond the memory of a tensor, or take all there is.
TEST_F(ExportedFiles, OperatorsThatTrustTheFile) {
  for (const char* name : {"_reshape_alias.default", "set_.source_Tensor", "resize_.default",
                           "_nested_view_from_buffer.default", "_foreach_add_.Tensor"}) {
    refuses([&](File& file) { file.nodes()[0]["target"] = std::string("torch.ops.aten.") + name; },
            "this operator is not run");
  }
  refuses(
      [](File& file) {
        file.nodes()[0]["target"] = "torch.ops.aten.from_file.default";
        file.nodes()[0]["inputs"] = {argument("filename", {{"as_string", "/etc/hostname"}}),
                                     argument("size", {{"as_int", 1}})};
      },
      "a network may not read files");
  refuses(
      [](File& file) {
        json& image = file.graph()["tensor_values"]["x"]["sizes"];
        image[2] = image[3] = {{"as_int", 1'000'000}};
      },
      "takes images of 1000000 x 1000000");
  refuses(
      [](File& file) {
        file.metadata = R"({"preprocessing": {"mean": [0, 0, 0], "std": [1, 1, 1], "size": 4097}})";
      },
      "from 1 to 4096");
}

TEST_F(ExportedFiles, Operators) {
  refuses([](File& file) { file.nodes()[0]["target"] = "torch.ops.aten.maen.dim"; },
          "node mean (torch.ops.aten.maen.dim): this operator is not known here");
  refuses([](File& file) { file.nodes()[0]["target"] = "torch.ops.mine.mean.dim"; },
          "not known here");
  refuses([](File& file) { file.nodes()[0]["target"] = "os.system"; }, "not known here");
  refuses([](File& file) { file.nodes()[0]["target"] = "torch.ops.higher_order.cond"; },
          "a graph within the graph");
  refuses(
      [](File& file) {
        file.nodes()[0] = node("file", "torch.ops.aten.from_file.default",
                               json::array({argument("filename", {{"as_string", "/etc/passwd"}})}),
                               json::array({tensor("mean")}));
      },
      "may not read files");
  refuses(
      [](File& file) {
        file.nodes()[0] =
            node("drawn", "torch.ops.aten.rand_like.default",
                 json::array({argument("self", tensor("x"))}), json::array({tensor("mean")}));
      },
      "draws random numbers");
  refuses(
      [](File& file) {
        file.nodes()[0] =
            node("found", "torch.ops.aten.nonzero.default",
                 json::array({argument("self", tensor("x"))}), json::array({tensor("mean")}));
      },
      "depends on the values of the images");
  refuses(
      [](File& file) {
        file.nodes()[0] =
            node("written", "torch.ops.aten.mul_.Tensor",
                 {argument("self", tensor("p")), argument("other", {{"as_float", 2.0}})},
                 json::array({tensor("mean")}));
      },
      "changes \"fc.weight\" while the network answers");
  refuses(
      [](File& file) {
        file.graph()["tensor_values"]["mask"] = {{"dtype", 12}, {"sizes", json::array()}};
        const json mask = {{"as_tensors", json::array({{{"name", "mask"}}})}};
        file.nodes().insert(file.nodes().begin(), node("mask", "torch.ops.aten.ne.Scalar",
                                                       {argument("self", tensor("x")),
                                                        argument("other", {{"as_int", 0}})},
                                                       json::array({tensor("mask")})));
        file.nodes()[1] = node("chosen", "torch.ops.aten.index.Tensor",
                               {argument("self", tensor("x")), argument("indices", mask)},
                               json::array({tensor("mean")}));
      },
      "node chosen (torch.ops.aten.index.Tensor): what it does depends on the values of the "
      "images");
}

TEST_F(ExportedFiles, Arguments) {
  const auto change = [](const json& value) {
    return [value](File& file) { file.nodes()[0]["inputs"][1]["arg"] = value; };
  };
  refuses(change({{"as_ints", {2, 9}}}), "the network cannot answer");
  refuses(change({{"as_ints", "two"}}), "node mean");
  refuses(change({{"as_graph", {{"name", "g"}}}}), "an argument of the kind as_graph is not known");
  refuses(change(tensor("nobody")), "\"nobody\" is used before anything makes it");
  refuses(change({{"as_string", "two"}}), "the network cannot answer");
  refuses(change(json::array()), "node mean");
  refuses(change(7), "node mean");
  refuses([](File& file) { file.nodes()[0]["inputs"][1]["name"] = "dimension"; },
          "arguments that the operator does not take");
  refuses([](File& file) { file.nodes()[1]["inputs"].erase(1); }, "its argument weight is missing");
  refuses([](File& file) { file.nodes()[0]["outputs"].push_back(tensor("more")); }, "2 results");
  refuses([](File& file) { file.nodes()[0]["outputs"] = json::array({tensor("x")}); },
          "two values are called \"x\"");
}

TEST_F(ExportedFiles, Graphs) {
  refuses([](File& file) { file.graph().erase("nodes"); }, "not as torch.export.save writes it");
  refuses([](File& file) { file.graph()["outputs"].push_back(tensor("mean")); },
          "more than one result");
  refuses([](File& file) { file.graph()["outputs"] = json::array({tensor("nothing")}); },
          "nothing");
  refuses(
      [](File& file) {
        file.graph()["tensor_values"]["x"]["sizes"][0] = {{"as_int", 2}};
      },
      "the batch size is fixed at 2");
  refuses(
      [](File& file) {
        file.graph()["tensor_values"]["x"]["sizes"][1] = {{"as_int", 1}};
      },
      "images of 1 channels");
  refuses(
      [](File& file) {
        file.graph()["tensor_values"]["x"]["sizes"][2] = {{"as_int", 8}};
      },
      "8 x 4 alone");
  refuses([](File& file) { file.graph()["tensor_values"]["x"]["dtype"] = 8; }, "not float32");
  refuses(
      [](File& file) {
        file.graph()["tensor_values"]["linear"]["sizes"][1] = {{"as_int", 3}};
      },
      "[3, 2] came out, and not [3, 3]");
  refuses(
      [](File& file) {
        file.program["graph_module"]["signature"]["output_specs"].push_back(
            {{"buffer_mutation", {{"arg", {{"name", "y"}}}, {"buffer_name", "bn.running_mean"}}}});
      },
      "changes its \"bn.running_mean\" while it answers: was it exported while training?");
  refuses([](File& file) { file.nodes().erase(1); }, "linear");
}

TEST_F(ExportedFiles, Metadata) {
  const auto refuses_metadata = [&](const std::string& text, const std::string& words) {
    refuses([&](File& file) { file.metadata = text; }, words);
  };
  refuses_metadata("{", "extra/gala.json is not JSON");
  refuses_metadata("[]", "not a JSON object");
  refuses_metadata(R"({"classes": ["a"]})", "names 1 classes, and it has 2");
  refuses_metadata(R"({"classes": 3})", "not a list of texts");
  refuses_metadata(R"({"preprocessing": {}})", "preprocessing");
  refuses_metadata(R"({"preprocessing": {"mean": [0, 0, 0], "std": [1, 1, 1], "size": 8,
                       "interpolation": "bilinear", "channels": "rgb"}})",
                   "prepares images of 8 x 8, and it takes 4 x 4 alone");
  refuses_metadata(std::string(100'000, '['), "gala.json");
}

/// Every value of the graph, and of what it says of its weights, replaced by others: whatever comes of it,
/// it is an answer or an error of the file.
TEST_F(ExportedFiles, AnyValueMayBeWrong) {
  const std::vector<json> wrong = {
      nullptr,       true,           -1,          std::int64_t{1} << 62, 1.5, "x",
      json::array(), json::object(), tensor("x"), {{"as_int", -5}}};
  int refused = 0, answered = 0;
  for (const bool in_weights : {false, true}) {
    const File whole;
    const json flat = (in_weights ? whole.weights : whole.program).flatten();
    for (const auto& [place, value] : flat.items()) {
      for (const json& other : wrong) {
        File file;
        (in_weights ? file.weights : file.program)[json::json_pointer(place)] = other;
        try {
          open(file.write());
          ++answered;
        } catch (const FormatError&) {
          ++refused;
        }
      }
    }
  }
  EXPECT_GT(refused, 300);
  EXPECT_GT(answered, 20);
}

TEST(ExportedNumbers, AreThoseOfPython) {
  const auto compute = [](std::string_view target, std::vector<c10::IValue> inputs) {
    const auto found = exported::find_number_operation(target);
    EXPECT_EQ(found.inputs, inputs.size()) << target;
    return found.operation(inputs);
  };
  EXPECT_EQ(compute("_operator.floordiv", {-7, 2}).toInt(), -4);
  EXPECT_EQ(compute("_operator.floordiv", {7, -2}).toInt(), -4);
  EXPECT_EQ(compute("_operator.floordiv", {-8, 2}).toInt(), -4);
  EXPECT_EQ(compute("_operator.mod", {-7, 3}).toInt(), 2);
  EXPECT_EQ(compute("_operator.mod", {7, -3}).toInt(), -2);
  EXPECT_EQ(compute("_operator.pow", {3, 4}).toInt(), 81);
  EXPECT_EQ(compute("_operator.truediv", {3, 4}).toDouble(), 0.75);
  EXPECT_EQ(compute("_operator.add", {3, 0.5}).toDouble(), 3.5);
  EXPECT_EQ(compute("torch.sym_max", {3, 4}).toInt(), 4);
  EXPECT_EQ(compute("torch.sym_ite", {false, 3, 4}).toInt(), 4);
  EXPECT_EQ(compute("math.ceil", {2.5}).toInt(), 3);
  EXPECT_TRUE(compute("_operator.le", {3, 3}).toBool());
  EXPECT_THROW(compute("_operator.floordiv", {1, 0}), Error);
  EXPECT_THROW(compute("_operator.mul", {std::int64_t{1} << 62, 4}), Error);
  EXPECT_EQ(exported::find_number_operation("_operator.matmul").operation, nullptr);
}

TEST(ExportedPlaces, BlocksAreTheLargestNumberedFamily) {
  const auto blocks_of = [](const std::vector<std::pair<std::string, std::int64_t>>& modules) {
    std::deque<Parameter> parameters;
    for (const auto& [module, count] : modules) {
      parameters.push_back({module + ".weight", module, ModuleKind::kOther, module == "fc" ? 0 : 1,
                            at::zeros({count})});
    }
    exported::assign_blocks(parameters);
    std::vector<int> blocks;
    for (const Parameter& parameter : parameters) blocks.push_back(parameter.block);
    return blocks;
  };
  using Blocks = std::vector<int>;
  // The stem of several layers is numbered, too, and smaller.
  EXPECT_EQ(
      blocks_of({{"conv1.0", 1}, {"conv1.3", 2}, {"layer1.0", 4}, {"layer2.0", 4}, {"fc", 9}}),
      (Blocks{1, 1, 1, 2, 0}));
  EXPECT_EQ(blocks_of({{"encoder.layers.encoder_layer_0.ln", 2},
                       {"encoder.layers.encoder_layer_1.ln", 2},
                       {"encoder.layers.encoder_layer_10.ln", 2},
                       {"encoder.ln", 2},
                       {"fc", 9}}),
            (Blocks{1, 2, 3, 3, 0}));
  // What stands between two members joins the one before it.
  EXPECT_EQ(blocks_of({{"features.conv0", 1},
                       {"features.denseblock1.a", 5},
                       {"features.transition1.conv", 1},
                       {"features.denseblock2.a", 5}}),
            (Blocks{1, 1, 1, 2}));
  EXPECT_EQ(blocks_of({{"first", 1}, {"second", 2}, {"fc", 3}}), (Blocks{1, 1, 0}));
}

}  // namespace
}  // namespace gala
