#include "gala/model/exported/graph_reader.h"

#include <algorithm>

#include "gala/base/error.h"
#include "gala/base/words.h"

namespace gala::exported {
namespace {

using nlohmann::json;

constexpr const char* kEvalFirst =
    "was it exported while training? Call model.eval() before torch.export.export";

/// The name of the symbol that a size is: "s77" for Symbol('s77', positive=True) and for s77 itself.
std::string symbol_of(const std::string& expression) {
  const auto quote = expression.find('\'');
  if (quote == std::string::npos) return expression;
  return expression.substr(quote + 1, expression.find('\'', quote + 1) - quote - 1);
}

}  // namespace

Graph read_graph(const Archive& archive) {
  try {
    return GraphReader(archive).read();
  } catch (const FormatError&) {
    throw;
  } catch (const std::exception& error) {
    archive.refuse(
        fmt::format("its graph is not as torch.export.save writes it: {}", in_words(error)));
  }
}

GraphReader::GraphReader(const Archive& archive)
    : archive_(archive),
      module_(archive.program().at("graph_module")),
      graph_(module_.at("graph")) {}

Graph GraphReader::read() {
  read_inputs();
  for (const json& node : graph_.at("nodes")) {
    try {
      read_node(node);
    } catch (const FormatError&) {
      throw;
    } catch (const std::exception& error) {
      archive_.refuse(fmt::format("node {} ({}): {}", node.value("name", "without a name"),
                                  node.value("target", "without a target"), in_words(error)));
    }
  }
  read_output();
  find_head();
  join_what_follows_norms();
  note_deaths();
  for (const GraphInput& input : result_.inputs) {
    if (input.role == GraphInput::Role::kParameter && !input.used) {
      result_.unused.push_back(input.name);
    }
  }
  result_.places = places_.size();
  return std::move(result_);
}

void GraphReader::read_inputs() {
  const json& signature = module_.at("signature");
  for (const json& spec : signature.at("input_specs")) read_input(spec);
  for (const json& spec : signature.at("output_specs")) {
    const auto [kind, value] = unpack(spec);
    if (kind == "user_output") continue;
    if (kind == "buffer_mutation" || kind == "parameter_mutation") {
      archive_.refuse(
          fmt::format("the network changes its \"{}\" while it answers: {}",
                      value.value(kind == "buffer_mutation" ? "buffer_name" : "parameter_name", ""),
                      kEvalFirst));
    }
    archive_.refuse(fmt::format("has a result of the kind {}: only logits are understood", kind));
  }
  if (images_name_.empty()) archive_.refuse("takes no images");
  read_images();
}

void GraphReader::read_input(const json& spec) {
  const auto [kind, value] = unpack(spec);
  if (kind == "constant_input") return;
  GraphInput input;
  std::string name;
  if (kind == "user_input") {
    const auto [argument, tensor] = unpack(value.at("arg"));
    if (argument == "as_none") return;
    if (argument != "as_tensor" || !images_name_.empty()) {
      archive_.refuse(
          "takes more than one tensor of images: a classifier that takes images alone is "
          "needed");
    }
    input.role = GraphInput::Role::kImages;
    images_name_ = name = tensor.at("name").get<std::string>();
  } else if (kind == "parameter" || kind == "buffer" || kind == "tensor_constant") {
    input.role = kind == "parameter" ? GraphInput::Role::kParameter
                 : kind == "buffer"  ? GraphInput::Role::kBuffer
                                     : GraphInput::Role::kConstant;
    name = value.at("arg").at("name").get<std::string>();
    input.name = value.at(kind + "_name").get<std::string>();
  } else {
    archive_.refuse(fmt::format("has an input of the kind {}, which is not understood", kind));
  }
  if (input.role == GraphInput::Role::kParameter) {
    const auto type = archive_.type_of(input.name);
    if (type && type != c10::ScalarType::Float) {
      archive_.refuse(fmt::format("\"{}\" is {}, and float32 is needed: export model.float()",
                                  input.name, c10::toString(*type)));
    }
    for (const GraphInput& other : result_.inputs) {
      if (other.role == input.role && archive_.is_same(other.name, input.name)) {
        places_[name] = other.place;  // tied weights: one tensor with two names
        result_.unused.push_back(input.name);
        return;
      }
    }
  }
  input.place = add_place(name);
  if (input.role == GraphInput::Role::kImages) result_.images = input.place;
  input_of_place_[input.place] = result_.inputs.size();
  result_.inputs.push_back(std::move(input));
}

const json& GraphReader::meta_of(Place place) const {
  const auto named = std::find_if(places_.begin(), places_.end(),
                                  [&](const auto& item) { return item.second == place; });
  return graph_.at("tensor_values").at(named->first);
}

std::optional<c10::ScalarType> GraphReader::type_of(Place place) const {
  return scalar_type(meta_of(place).at("dtype").get<std::int64_t>());
}

void GraphReader::read_images() {
  const json& sizes = meta_of(result_.images).at("sizes");
  if (type_of(result_.images) != c10::ScalarType::Float) {
    archive_.refuse("takes images that are not float32: export model.float() with float32 images");
  }
  if (sizes.size() != 4) archive_.refuse("does not take images [N, 3, H, W]");
  if (sizes[0].contains("as_int")) {
    archive_.refuse(
        fmt::format("the batch size is fixed at {}: export it with any batch size, by "
                    "tools/export_model.py or with "
                    "dynamic_shapes=({{0: torch.export.Dim(\"batch\")}},)",
                    sizes[0].at("as_int").dump()));
  }
  if (sizes[1].value("as_int", 3) != 3) {
    archive_.refuse(
        fmt::format("takes images of {} channels, not of 3", sizes[1].at("as_int").dump()));
  }
  result_.height = sizes[2].value("as_int", std::int64_t{0});
  result_.width = sizes[3].value("as_int", std::int64_t{0});
  constexpr std::int64_t kLargest = 4096;
  if (std::max(result_.height, result_.width) > kLargest ||
      std::min(result_.height, result_.width) < 0) {
    archive_.refuse(fmt::format("takes images of {} x {}: up to {} are accepted", result_.height,
                                result_.width, kLargest));
  }
  const std::string symbol = symbol_of(sizes[0].at("as_expr").at("expr_str").get<std::string>());
  const json& ranges = archive_.program().at("range_constraints");
  if (const auto range = ranges.find(symbol); range != ranges.end()) {
    const json most = range->value("max_val", json(nullptr));
    if (most.is_number_integer()) result_.most_images = most.get<std::int64_t>();
  }
}

void GraphReader::read_output() {
  const json& outputs = graph_.at("outputs");
  if (outputs.size() != 1 || unpack(outputs[0]).first != "as_tensor") {
    archive_.refuse(
        "gives more than one result: a classifier that gives its logits alone is needed");
  }
  const std::string name = unpack(outputs[0]).second.at("name").get<std::string>();
  result_.logits = place_of(name);
  const json& sizes = meta_of(result_.logits).at("sizes");
  if (sizes.size() != 2 || !sizes[1].contains("as_int")) {
    archive_.refuse("does not give logits [N, classes]");
  }
  result_.classes = sizes[1].at("as_int").get<std::int64_t>();
  constexpr std::int64_t kMostClasses = 1'000'000;
  if (result_.classes < 2 || result_.classes > kMostClasses) {
    archive_.refuse(fmt::format("gives {} logits for an image: from 2 to {} are accepted",
                                result_.classes, kMostClasses));
  }
}

void GraphReader::find_head() {
  const auto is_linear = [](const std::string& target) {
    return target == "torch.ops.aten.linear.default";
  };
  const auto last = std::find_if(targets_.rbegin(), targets_.rend(), is_linear);
  const auto decomposed =
      std::find_if(targets_.begin(), targets_.end(), [](const std::string& target) {
        return target.starts_with("torch.ops.aten.addmm.") ||
               target.starts_with("torch.ops.aten.mm.");
      });
  if (last == targets_.rend()) {
    archive_.refuse(
        decomposed != targets_.end()
            ? "was taken apart by run_decompositions, after which its layers cannot be told: "
              "save what torch.export.export gives as it is"
            : "has no linear layer: a classifier that ends in one is needed");
  }
  result_.head = static_cast<std::size_t>(targets_.rend() - last) - 1;
  const Node& head = result_.nodes[result_.head];
  const auto* features = std::get_if<Value>(&head.inputs[0]);
  if (!features) archive_.refuse("its last linear layer sees no tensor");
  result_.features = features->place;
  if (meta_of(features->place).at("sizes").size() != 2) {
    archive_.refuse(fmt::format(
        "its last linear layer ({}) does not see one row of features for each image", head.name));
  }
  for (std::size_t i = 1; i < head.inputs.size(); ++i) {
    if (const auto number = input_number(head.inputs[i])) result_.head_inputs.push_back(*number);
  }
  if (result_.head_inputs.empty() ||
      result_.inputs[result_.head_inputs[0]].role != GraphInput::Role::kParameter) {
    archive_.refuse(
        fmt::format("the weight of its last linear layer ({}) is no parameter", head.name));
  }
}

void GraphReader::note_deaths() {
  std::map<Place, std::size_t> last_use;
  for (std::size_t i = 0; i < result_.nodes.size(); ++i) {
    const Node& node = result_.nodes[i];
    for (const Result& result : node.results) {
      for (const Place place : result.places) last_use[place] = i;
    }
    for (const Input& input : node.inputs) {
      for_each_place(input, [&](Place place) { last_use[place] = i; });
    }
  }
  for (const auto& [place, node] : last_use) {
    if (place != result_.logits) result_.nodes[node].dies.push_back(place);
  }
}

Place GraphReader::add_place(const std::string& name) {
  const Place place = places_.size();
  if (!places_.emplace(name, place).second) {
    archive_.refuse(fmt::format("two values are called \"{}\"", name));
  }
  return place;
}

Place GraphReader::place_of(const std::string& name) const {
  const auto found = places_.find(name);
  if (found == places_.end()) fail("the value \"{}\" is used before anything makes it", name);
  return found->second;
}

GraphInput* GraphReader::input_at(Place place) {
  const auto found = input_of_place_.find(place);
  return found == input_of_place_.end() ? nullptr : &result_.inputs[found->second];
}

std::optional<std::size_t> GraphReader::input_number(const Input& input) const {
  const auto* value = std::get_if<Value>(&input);
  if (!value) return std::nullopt;
  const auto found = input_of_place_.find(value->place);
  if (found == input_of_place_.end()) return std::nullopt;
  return found->second;
}

}  // namespace gala::exported
