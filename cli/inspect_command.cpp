#include <fmt/format.h>

#include <iostream>
#include <map>
#include <memory>

#include "cli/command.h"
#include "cli/model_flags.h"
#include "cli/text.h"
#include "gala/base/error.h"
#include "gala/model/partition.h"
#include "gala/model/weights.h"

namespace gala {
namespace {

std::string shape_of(const Parameter& parameter) {
  return fmt::format("{}", fmt::join(parameter.value.sizes(), "x"));
}

std::string_view kind_of(ModuleKind kind) {
  switch (kind) {
    case ModuleKind::kConvolution:
      return "convolution";
    case ModuleKind::kNorm:
      return "norm";
    case ModuleKind::kLinear:
      return "linear";
    case ModuleKind::kOther:
      return "other";
  }
  return "?";
}

void inspect(const ModelFlags& flags, Granularity granularity) {
  std::vector<std::string> warnings;
  const auto model = flags.open(warnings);
  const auto parameters = adapted_parameters(*model, {}, granularity);
  const LayerPartition layers = make_partition(parameters, granularity);
  std::vector<std::vector<std::string>> rows = {
      {"layer", "kind", "block", "tensors", "parameters", "shapes"}};
  for (const Layer& layer : layers.layers) {
    const Parameter& first = *parameters[layer.tensors[0]];
    std::vector<std::string> shapes;
    for (const std::size_t t : layer.tensors) shapes.push_back(shape_of(*parameters[t]));
    const bool block = granularity == Granularity::kBlock;
    rows.push_back({layer.name, block ? "block" : std::string(kind_of(first.kind)),
                    first.in_head() ? "head" : std::to_string(first.block),
                    std::to_string(layer.tensors.size()), with_commas(layer.count),
                    block ? fmt::format("{} ... {}", shapes.front(), shapes.back())
                          : fmt::format("{}", fmt::join(shapes, " "))});
  }
  // Shapes do not need weights; how images are prepared does.
  const bool has_weights = !flags.weights.empty() || model->brings_weights();
  if (has_weights) {
    for (const std::string& warning : warnings) warn(warning);
  }
  std::cout << format_table(rows) << '\n';

  std::int64_t total = 0;
  std::map<std::string_view, std::pair<int, std::int64_t>> by_kind;
  for (const Parameter& parameter : model->parameters()) {
    total += parameter.value.numel();
    auto& [tensors, count] = by_kind[kind_of(parameter.kind)];
    ++tensors;
    count += parameter.value.numel();
  }
  std::cout << fmt::format("model          {}\n", model->spec().to_string());
  std::cout << fmt::format("layers         {} ({})\n", layers.size(), format_value(granularity));
  std::cout << fmt::format("parameters     {} in {} tensors\n", with_commas(total),
                           model->parameters().size());
  for (const auto& [kind, numbers] : by_kind) {
    std::cout << fmt::format("  {:<13}{} in {} tensors\n", kind, with_commas(numbers.second),
                             numbers.first);
  }
  std::cout << fmt::format("preprocessing  {}\n", model->preprocessing().to_json().dump());
  if (!model->class_names().empty()) {
    std::cout << fmt::format("classes        {}\n", fmt::join(model->class_names(), ", "));
  }
  if (has_weights) std::cout << fmt::format("weight hash    {}\n", weight_hash(*model));
}

}  // namespace

void add_inspect_command(CLI::App& program) {
  struct Flags {
    ModelFlags model;
    std::string partition = "module";
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* command = program.add_subcommand("inspect", "A network's layers, shapes and groups");
  flags->model.add_to(*command);
  command
      ->add_option("--partition", flags->partition,
                   "how fine the layers are: tensor, module or block")
      ->capture_default_str()
      ->type_name("NAME");
  command->footer(
      "Examples:\n  gala inspect --model wide_resnet:depth=28,width=10 --partition block\n"
      "  gala inspect --weights adapted.safetensors\n"
      "  gala inspect --model exported:path=net.pt2");
  command->callback([flags] {
    Granularity granularity;
    if (!parse_value(flags->partition, granularity)) {
      fail<ConfigError>("--partition {}: unknown (expected tensor, module or block)",
                        flags->partition);
    }
    inspect(flags->model, granularity);
  });
}

}  // namespace gala
