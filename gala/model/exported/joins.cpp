// Nodes that our kernels do in one pass over the maps: a norm, the shortcut that is added to it, and the relu after
// them.
#include <algorithm>
#include <array>

#include "gala/model/exported/graph_reader.h"

namespace gala::exported {
namespace {

bool is_relu(const std::string& target) {
  return target == "torch.ops.aten.relu.default" || target == "torch.ops.aten.relu_.default";
}

bool is_one(const Input& input) {
  const auto* constant = std::get_if<Constant>(&input);
  return constant && constant->value.isScalar() && constant->value.toScalar().equal(1);
}

}  // namespace

void GraphReader::join_what_follows_norms() {
  Uses uses;
  for (std::size_t i = 0; i < result_.nodes.size(); ++i) {
    for (const Input& input : result_.nodes[i].inputs) {
      for_each_place(input, [&](Place place) { uses.readers[place].push_back(i); });
    }
    for (const Result& result : result_.nodes[i].results) {
      for (const Place place : result.places) uses.makers[place] = i;
    }
  }
  for (std::size_t i = 0; i < result_.nodes.size(); ++i) join_shortcut(i, uses);
  for (Node& node : result_.nodes) join_relu(node, uses);
}

/// The number of the norm whose result a node adds something to, where nobody else asks for that result or for what the
/// norm sees: then it can wait for what is added.
std::optional<std::size_t> GraphReader::norm_that_can_wait(std::size_t adding, const Input& input,
                                                           Uses& uses) const {
  const auto* value = std::get_if<Value>(&input);
  if (!value || !uses.makers.contains(value->place)) return std::nullopt;
  const std::size_t number = uses.makers.at(value->place);
  const Node& norm = result_.nodes[number];
  if (norm.kind != Node::Kind::kNorm || norm.adds) return std::nullopt;
  if (uses.readers[value->place] != std::vector<std::size_t>{adding}) return std::nullopt;
  // A convolution's result is new memory, which nobody can write to meanwhile.
  const auto* seen = std::get_if<Value>(&norm.inputs[0]);
  if (!seen || !uses.makers.contains(seen->place)) return std::nullopt;
  if (uses.readers[seen->place] != std::vector<std::size_t>{number}) return std::nullopt;
  if (targets_[uses.makers.at(seen->place)] != "torch.ops.aten.conv2d.default") return std::nullopt;
  return number;
}

void GraphReader::join_shortcut(std::size_t adding, Uses& uses) {
  Node& node = result_.nodes[adding];
  const std::string& target = targets_[adding];
  const bool in_place = target == "torch.ops.aten.add_.Tensor";
  if (!in_place && target != "torch.ops.aten.add.Tensor") return;
  if (node.inputs.size() != 3 || !is_one(node.inputs[2])) return;
  const auto *one = std::get_if<Value>(&node.inputs[0]),
             *other = std::get_if<Value>(&node.inputs[1]);
  if (!one || !other || one->place == other->place || !are_alike(one->place, other->place)) return;
  // What is written to must be the norm's result: others may read the shortcut.
  for (const std::size_t which : {std::size_t{0}, std::size_t{1}}) {
    if (in_place && which == 1) return;
    const auto number = norm_that_can_wait(adding, node.inputs[which], uses);
    if (!number) continue;
    Node& norm = result_.nodes[*number];
    norm.kind = Node::Kind::kSame;  // its place holds what the norm sees until then
    node.kind = Node::Kind::kNorm;
    node.norm = norm.norm;
    node.adds = true;
    node.inputs = {node.inputs[which], node.inputs[1 - which]};
    return;
  }
}

/// Whether both are float32 maps [N, C, H, W] of the same size.
bool GraphReader::are_alike(Place one, Place other) const {
  const nlohmann::json &sizes = meta_of(one).at("sizes"), &others = meta_of(other).at("sizes");
  return sizes.size() == 4 && sizes == others && type_of(one) == c10::ScalarType::Float &&
         type_of(other) == c10::ScalarType::Float;
}

void GraphReader::join_relu(Node& node, Uses& uses) {
  if (node.kind != Node::Kind::kNorm) return;
  const Place place = node.results[0].places[0];
  const std::vector<std::size_t>& readers = uses.readers[place];
  if (readers.size() != 1 || place == result_.logits || !is_relu(targets_[readers[0]])) return;
  node.relu = true;
  result_.nodes[readers[0]].kind = Node::Kind::kSame;
}

}  // namespace gala::exported
