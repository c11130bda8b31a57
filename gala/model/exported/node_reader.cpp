// How a node of the file becomes one that can run: its operator found, its arguments in the operator's
// order, and everything refused that could not adapt.
#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <array>

#include "gala/base/error.h"
#include "gala/model/exported/arguments.h"
#include "gala/model/exported/graph_reader.h"

namespace gala::exported {
namespace {

using nlohmann::json;

template <std::size_t Count>
bool is_one_of(std::string_view word, const std::array<std::string_view, Count>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// They look whether the export's assumptions hold; those that matter are checked before a pass.
bool is_assertion(std::string_view operation) {
  constexpr std::array<std::string_view, 5> kAssertions{
      "aten::_assert_scalar", "aten::_assert_async", "aten::_assert_tensor_metadata",
      "aten::sym_constrain_range", "aten::sym_constrain_range_for_size"};
  return is_one_of(operation, kAssertions);
}

bool is_dropout(std::string_view operation) {
  constexpr std::array<std::string_view, 7> kDropouts{"aten::dropout",
                                                      "aten::dropout_",
                                                      "aten::feature_dropout",
                                                      "aten::feature_dropout_",
                                                      "aten::alpha_dropout",
                                                      "aten::alpha_dropout_",
                                                      "aten::feature_alpha_dropout"};
  return is_one_of(operation, kDropouts);
}

ModuleKind kind_of_use(std::string_view operation, std::string_view argument, bool in_own_module,
                       std::string_view class_name) {
  constexpr std::array<std::string_view, 6> kConvolutions{
      "aten::conv1d",           "aten::conv2d",           "aten::conv3d",
      "aten::conv_transpose2d", "aten::conv_transpose1d", "aten::convolution"};
  constexpr std::array<std::string_view, 7> kNorms{
      "aten::batch_norm",        "aten::layer_norm",        "aten::group_norm",
      "aten::native_layer_norm", "aten::native_group_norm", "aten::instance_norm",
      "aten::rms_norm"};
  if (argument == "weight" || argument == "bias") {
    if (is_one_of(operation, kConvolutions)) return ModuleKind::kConvolution;
    if (is_one_of(operation, kNorms)) return ModuleKind::kNorm;
    if (operation == "aten::linear") return ModuleKind::kLinear;
  }
  if (!in_own_module) return ModuleKind::kOther;
  if (class_name.find("Norm") != std::string_view::npos) return ModuleKind::kNorm;
  if (class_name.find("Conv2d") != std::string_view::npos) return ModuleKind::kConvolution;
  if (class_name.ends_with("Linear")) return ModuleKind::kLinear;
  return ModuleKind::kOther;
}

/// The constant of an argument by its name; nullptr where it is none or there is no such argument.
const c10::IValue* constant_of(const Node& node, std::string_view name) {
  const auto& arguments = node.operation->schema().arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name() != name) continue;
    const auto* constant = std::get_if<Constant>(&node.inputs[i]);
    return constant ? &constant->value : nullptr;
  }
  return nullptr;
}

/// Operators that take their arguments on trust, such as where in memory a tensor lies, or that change
/// more than values. Most of those that LibTorch begins with an underscore are meant for itself alone;
/// these few are what it makes of networks.
bool is_unsafe(std::string_view operation) {
  constexpr std::array<std::string_view, 5> kOpen{"aten::set_", "aten::set_data", "aten::resize_",
                                                  "aten::resize_as_", "aten::as_strided_"};
  constexpr std::array<std::string_view, 23> kOfNetworks{
      "aten::_adaptive_avg_pool2d",
      "aten::_adaptive_avg_pool3d",
      "aten::_conj",
      "aten::_convolution",
      "aten::_fft_c2c",
      "aten::_fft_c2r",
      "aten::_fft_r2c",
      "aten::_log_softmax",
      "aten::_native_batch_norm_legit",
      "aten::_native_batch_norm_legit_functional",
      "aten::_native_batch_norm_legit_no_training",
      "aten::_native_multi_head_attention",
      "aten::_prelu_kernel",
      "aten::_safe_softmax",
      "aten::_scaled_dot_product_attention_math",
      "aten::_scaled_dot_product_flash_attention_for_cpu",
      "aten::_softmax",
      "aten::_to_copy",
      "aten::_transformer_encoder_layer_fwd",
      "aten::_trilinear",
      "aten::_upsample_bicubic2d_aa",
      "aten::_upsample_bilinear2d_aa",
      "aten::_weight_norm"};
  return is_one_of(operation, kOpen) ||
         (operation.starts_with("aten::_") && !is_one_of(operation, kOfNetworks));
}

bool is_off(const c10::IValue* value) {
  return value &&
         ((value->isBool() && !value->toBool()) || (value->isDouble() && value->toDouble() == 0));
}

bool shares_memory(const c10::AliasInfo* one, const c10::AliasInfo* other) {
  if (!one || !other) return false;
  const auto& sets = other->beforeSets();
  return std::any_of(one->beforeSets().begin(), one->beforeSets().end(),
                     [&](const auto& set) { return sets.contains(set); });
}

}  // namespace

void GraphReader::read_node(const json& json) {
  const auto target = json.at("target").get<std::string>();
  Node node;
  node.name = json.value("name", target);
  if (target.starts_with("torch.ops.higher_order.")) {
    fail(
        "a graph within the graph is not run: write the network without it (cond, map, "
        "torch.no_grad() and checkpoint are recorded so)");
  }
  if (const FoundOperation found = find_number_operation(target); found.operation) {
    read_number_node(node, json, found);
  } else {
    if (is_assertion(operator_name(target).first)) return;
    read_operator(node, json);
  }
  result_.nodes.push_back(std::move(node));
  targets_.push_back(target);
}

void GraphReader::read_number_node(Node& node, const json& json, const FoundOperation& found) {
  node.kind = Node::Kind::kNumber;
  node.number = found.operation;
  for (const auto& input : json.at("inputs")) {
    node.inputs.push_back(
        read_number(input.at("arg"), [&](const std::string& name) { return place_of(name); }));
  }
  if (node.inputs.size() != found.inputs) {
    fail("{} inputs, and {} are needed", node.inputs.size(), found.inputs);
  }
  read_results(node, json);
  if (node.results.size() != 1 || node.results[0].is_list) fail("one number must come out");
}

void GraphReader::read_operator(Node& node, const json& json) {
  const auto target = json.at("target").get<std::string>();
  auto [operation, overload] = operator_name(target);
  // What lies one after the other in memory depends on the layout, so that a view may not be possible.
  if ((operation == "aten::view" && overload.empty()) || operation == "aten::_unsafe_view") {
    operation = "aten::reshape";
  }
  if (operation.starts_with("aten::")) {
    node.operation = c10::Dispatcher::singleton().findSchema({operation, overload});
  }
  if (!node.operation) fail("this operator is not known here");
  if (is_unsafe(operation)) fail("this operator is not run: it trusts what a file says of memory");
  read_arguments(node, json);
  if (is_dropout(operation)) {
    if (!is_off(constant_of(node, "train"))) {
      fail("dropout is at work: call model.eval() before torch.export.export");
    }
    node.kind = Node::Kind::kSame;
  }
  if (operation == "aten::batch_norm") take_over_norm(node);
  if (operation == "aten::max_pool2d") take_over_pool(node);
  check_operator(node);
  read_results(node, json);
  const c10::FunctionSchema& schema = node.operation->schema();
  if (node.results.size() > schema.returns().size()) {
    fail("{} results, and the operator gives {}", node.results.size(), schema.returns().size());
  }
  check_writes(node, schema);
  if (node.kind != Node::Kind::kOperator &&
      (node.results.size() != 1 || node.results[0].is_list || node.results[0].places.empty())) {
    fail("one tensor must come out");
  }
  result_.gives_shares = operation == "aten::softmax" || operation == "aten::log_softmax";
}

void GraphReader::read_arguments(Node& node, const json& json) {
  const c10::FunctionSchema& schema = node.operation->schema();
  const ModuleOfNode module = module_of(json);
  const auto& given = json.at("inputs");
  std::size_t taken = 0;
  bool sees_tensor = false;
  for (const c10::Argument& wanted : schema.arguments()) {
    const auto found = std::find_if(given.begin(), given.end(), [&](const auto& input) {
      const auto name = input.at("name").template get<std::string>();
      // The shape that view and reshape take has two names.
      return name == wanted.name() ||
             (schema.name() == "aten::reshape" && name == "size" && wanted.name() == "shape");
    });
    if (found == given.end()) {
      node.inputs.push_back(default_argument(wanted));
    } else {
      ++taken;
      node.inputs.push_back(read_argument(found->at("arg"), wanted,
                                          [&](const std::string& name) { return place_of(name); }));
    }
    Input& input = node.inputs.back();
    note_use(input, schema.name(), wanted.name(), module);
    sees_tensor = sees_tensor || std::holds_alternative<Value>(input) ||
                  std::holds_alternative<Tensors>(input);
    const auto* constant = std::get_if<Constant>(&input);
    if (wanted.name() == "device" && constant && constant->value.isNone() && !sees_tensor) {
      input = ModelDevice{};  // a tensor made from nothing
    }
    if (wanted.name() == "pin_memory") input = Constant{};
  }
  if (taken != given.size()) fail("it has arguments that the operator does not take");
}

void GraphReader::note_use(const Input& input, const std::string& operation,
                           const std::string& argument, const ModuleOfNode& module) {
  for_each_place(input, [&](Place place) {
    GraphInput* found = input_at(place);
    if (!found || found->used) return;
    found->used = true;
    if (found->role != GraphInput::Role::kParameter) return;
    const auto dot = found->name.rfind('.');
    const std::string owner = dot == std::string::npos ? "" : found->name.substr(0, dot);
    found->kind =
        kind_of_use(operation, argument, owner == module.path && !owner.empty(), module.class_name);
    result_.parameters.push_back(input_of_place_.at(place));
  });
}

void GraphReader::check_operator(const Node& node) const {
  if (node.kind != Node::Kind::kOperator) return;
  const std::string& name = node.operation->schema().name();
  constexpr std::array<std::string_view, 2> kClosed{"aten::_native_multi_head_attention",
                                                    "aten::_transformer_encoder_layer_fwd"};
  if (is_one_of(name, kClosed)) {
    fail("this operator has no gradient: export the network without torch.no_grad()");
  }
  if (name.starts_with("aten::_native_batch_norm_legit") || name == "aten::native_batch_norm") {
    fail(
        "the network was taken apart by run_decompositions, and its norm layers cannot be taken "
        "over: "
        "save what torch.export.export gives as it is");
  }
  if (name == "aten::from_file") fail("a network may not read files");
  if (name == "aten::as_strided") fail("how values lie in memory is not as it was in the export");
  // Numbers as indices always give as many values; a mask does not.
  bool counts_values = node.operation->hasTag(at::Tag::dynamic_output_shape);
  if (name == "aten::index") {
    counts_values = false;
    for_each_place(node.inputs[1], [&](Place place) {
      counts_values = counts_values || type_of(place) == c10::ScalarType::Bool;
    });
  }
  if (counts_values || node.operation->hasTag(at::Tag::data_dependent_output)) {
    fail("what it does depends on the values of the images, not on their number and size alone");
  }
  if (node.operation->hasTag(at::Tag::nondeterministic_seeded) &&
      !is_off(constant_of(node, "training")) && !is_off(constant_of(node, "dropout_p")) &&
      !is_off(constant_of(node, "train"))) {
    fail("it draws random numbers: call model.eval() before torch.export.export");
  }
}

void GraphReader::check_writes(const Node& node, const c10::FunctionSchema& schema) {
  const auto origin = [&](const Input& input) -> std::optional<Place> {
    const auto* value = std::get_if<Value>(&input);
    if (!value) return std::nullopt;
    if (const auto found = origin_.find(value->place); found != origin_.end()) return found->second;
    if (input_at(value->place)) return value->place;
    return std::nullopt;
  };
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::AliasInfo* alias = schema.arguments()[i].alias_info();
    const std::optional<Place> place = origin(node.inputs[i]);
    if (!place) continue;
    if (alias && alias->isWrite()) {
      const GraphInput& written = *input_at(*place);
      if (written.role != GraphInput::Role::kImages) {
        fail(
            "it changes \"{}\" while the network answers: was it exported while training? Call "
            "model.eval() before torch.export.export",
            written.name);
      }
      result_.writes_images = true;
    }
    for (std::size_t r = 0; r < node.results.size(); ++r) {
      const bool same = node.kind == Node::Kind::kSame && i == 0;
      if (!same && !shares_memory(alias, schema.returns()[r].alias_info())) continue;
      for (const Place view : node.results[r].places) origin_[view] = *place;
    }
  }
}

void GraphReader::take_over_norm(Node& node) {
  const auto& arguments = node.operation->schema().arguments();
  const auto input_called = [&](std::string_view name) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].name() == name) return input_number(node.inputs[i]);
    }
    return std::optional<std::size_t>();
  };
  const auto mean = input_called("running_mean"), variance = input_called("running_var");
  if (!mean || !variance) return;  // it never had running statistics, and stays as it is
  if (!is_off(constant_of(node, "training"))) {
    fail("a norm layer is training: call model.eval() before torch.export.export");
  }
  const c10::IValue* epsilon = constant_of(node, "eps");
  if (!epsilon || !epsilon->isDouble()) fail("eps is no number");
  GraphNorm norm{input_called("weight"), input_called("bias"), *mean, *variance,
                 epsilon->toDouble()};
  for (const std::size_t number : {*mean, *variance}) result_.inputs[number].statistic = true;
  node.kind = Node::Kind::kNorm;
  node.norm = result_.norms.size();
  result_.norms.push_back(norm);
}

/// Windows of 3 x 3, two apart, with a border of one.
void GraphReader::take_over_pool(Node& node) {
  const auto is = [&](std::string_view name, std::int64_t wanted) {
    const c10::IValue* value = constant_of(node, name);
    if (!value || !value->isIntList()) return false;
    const std::vector<std::int64_t> numbers = value->toIntVector();
    return !numbers.empty() && std::all_of(numbers.begin(), numbers.end(),
                                           [&](std::int64_t number) { return number == wanted; });
  };
  if (is("kernel_size", 3) && is("stride", 2) && is("padding", 1) && is("dilation", 1) &&
      is_off(constant_of(node, "ceil_mode"))) {
    node.kind = Node::Kind::kPool;
  }
}

void GraphReader::read_results(Node& node, const json& json) {
  for (const auto& output : json.at("outputs")) {
    const auto [kind, value] = unpack(output);
    Result result;
    if (kind == "as_tensor") {
      result.places = {add_place(value.at("name").get<std::string>())};
    } else if (kind == "as_tensors") {
      result.is_list = true;
      for (const auto& item : value) {
        result.places.push_back(add_place(item.at("name").get<std::string>()));
      }
    } else if (kind == "as_sym_int" || kind == "as_sym_bool" || kind == "as_sym_float") {
      if (value.contains("as_name")) {
        result.places = {add_place(value.at("as_name").get<std::string>())};
      }
    } else if (kind != "as_none") {
      fail("a result of the kind {} is not known", kind);
    }
    node.results.push_back(std::move(result));
  }
}

}  // namespace gala::exported
