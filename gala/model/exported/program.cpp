#include "gala/model/exported/program.h"

#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>

#include "gala/base/error.h"
#include "gala/model/cuda_pool.h"

namespace gala::exported {
namespace {

using Values = std::vector<c10::IValue>;

/// Makes the value of an input.
struct Fetch {
  const Values& values;
  const Surroundings& surroundings;

  c10::IValue operator()(const Constant& input) const { return input.value; }
  c10::IValue operator()(const Value& input) const { return values[input.place]; }
  c10::IValue operator()(const ModelDevice&) const { return surroundings.device; }
  c10::IValue operator()(const NumberAsTensor& input) const {
    at::Tensor tensor = at::scalar_to_tensor(values[input.place].toScalar());
    tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
    return tensor;
  }
  c10::IValue operator()(const Numbers& input) const {
    c10::List<std::int64_t> list;
    list.reserve(input.items.size());
    for (const auto& item : input.items) {
      const auto* number = std::get_if<std::int64_t>(&item);
      list.push_back(number ? *number : values[std::get<Value>(item).place].toInt());
    }
    return list;
  }
  c10::IValue operator()(const Tensors& input) const {
    if (input.optional) {
      c10::List<std::optional<at::Tensor>> list;
      for (const auto& item : input.items) {
        list.push_back(item ? std::optional(values[*item].toTensor()) : std::nullopt);
      }
      return list;
    }
    c10::List<at::Tensor> list;
    for (const auto& item : input.items) list.push_back(values[item.value()].toTensor());
    return list;
  }
};

void put(const Node& node, const Result& result, c10::IValue value, Values& values) {
  if (!result.is_list) {
    if (!result.places.empty()) values[result.places[0]] = std::move(value);
    return;
  }
  const c10::List<at::Tensor> list = value.toTensorList();
  if (list.size() != result.places.size()) {
    fail("{}: {} tensors came out, and {} were expected", node.name, list.size(),
         result.places.size());
  }
  for (std::size_t i = 0; i < list.size(); ++i) values[result.places[i]] = list.get(i);
}

void call(const Node& node, Values& values, const Fetch& fetch) {
  c10::Stack stack;
  stack.reserve(node.inputs.size());
  for (const Input& input : node.inputs) stack.push_back(std::visit(fetch, input));
  node.operation->callBoxed(&stack);
  for (std::size_t i = 0; i < node.results.size(); ++i) {
    put(node, node.results[i], std::move(stack[i]), values);
  }
}

/// Our norm knows maps [N, C, H, W]; other shapes are seen as such.
at::Tensor normalise(const Node& node, const Fetch& fetch, const Surroundings& surroundings) {
  const at::Tensor input = std::visit(fetch, node.inputs[0]).toTensor();
  NormPass pass = surroundings.pass;
  // Several rows an image, as where pieces of it are looked at one by one.
  if (pass.counted.defined() && input.size(0) != surroundings.images) {
    pass.counted = (pass.counted * input.size(0)).floor_divide(surroundings.images);
  }
  const BatchNorm& norm = surroundings.norms[node.norm];
  NormEnd end{.relu = node.relu};
  if (node.adds) end.added = std::visit(fetch, node.inputs[1]).toTensor();
  if (input.dim() == 4) return norm.forward(input, pass, end);
  const at::Tensor maps = input.reshape({input.size(0), input.size(1), -1, 1});
  return norm.forward(maps, pass, end).reshape(input.sizes());
}

void pool(const Node& node, Values& values, const Fetch& fetch) {
  at::Tensor pooled = cuda_pool(std::visit(fetch, node.inputs[0]).toTensor());
  if (!pooled.defined()) return call(node, values, fetch);
  put(node, node.results[0], std::move(pooled), values);
}

void do_arithmetic(const Node& node, Values& values, const Fetch& fetch) {
  std::vector<c10::IValue> inputs;
  for (const Input& input : node.inputs) inputs.push_back(std::visit(fetch, input));
  put(node, node.results[0], node.number(inputs), values);
}

}  // namespace

void run(std::span<const Node> nodes, Values& values, const Surroundings& surroundings) {
  const Fetch fetch{values, surroundings};
  for (const Node& node : nodes) {
    switch (node.kind) {
      case Node::Kind::kOperator:
        call(node, values, fetch);
        break;
      case Node::Kind::kNorm:
        put(node, node.results[0], normalise(node, fetch, surroundings), values);
        break;
      case Node::Kind::kPool:
        pool(node, values, fetch);
        break;
      case Node::Kind::kNumber:
        do_arithmetic(node, values, fetch);
        break;
      case Node::Kind::kSame:
        put(node, node.results[0], std::visit(fetch, node.inputs[0]), values);
        break;
    }
    for (const Place place : node.dies) values[place] = {};
  }
}

}  // namespace gala::exported
