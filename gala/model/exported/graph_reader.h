#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gala/model/exported/graph.h"
#include "gala/model/exported/schema.h"

namespace gala::exported {

/// Makes a graph from the JSON of an archive, node by node.
class GraphReader {
 public:
  explicit GraphReader(const Archive& archive);
  Graph read();

 private:
  // The signature (graph_reader.cpp).
  void read_inputs();
  void read_input(const nlohmann::json& spec);
  void read_images();
  void read_output();
  void find_head();
  void note_deaths();
  /// What the file says of a tensor.
  const nlohmann::json& meta_of(Place place) const;
  std::optional<c10::ScalarType> type_of(Place place) const;

  // What goes with a norm (joins.cpp).
  struct Uses {
    std::map<Place, std::vector<std::size_t>> readers;  ///< nodes, once for each input
    std::map<Place, std::size_t> makers;
  };
  void join_what_follows_norms();
  void join_shortcut(std::size_t adding, Uses& uses);
  void join_relu(Node& node, Uses& uses);
  std::optional<std::size_t> norm_that_can_wait(std::size_t adding, const Input& input,
                                                Uses& uses) const;
  bool are_alike(Place one, Place other) const;

  // The nodes (node_reader.cpp).
  void read_node(const nlohmann::json& json);
  void read_number_node(Node& node, const nlohmann::json& json, const FoundOperation& found);
  void read_operator(Node& node, const nlohmann::json& json);
  void read_arguments(Node& node, const nlohmann::json& json);
  void check_operator(const Node& node) const;
  void check_writes(const Node& node, const c10::FunctionSchema& schema);
  void take_over_norm(Node& node);
  static void take_over_pool(Node& node);
  void note_use(const Input& input, const std::string& operation, const std::string& argument,
                const ModuleOfNode& module);
  void read_results(Node& node, const nlohmann::json& json);

  Place add_place(const std::string& name);
  Place place_of(const std::string& name) const;
  /// Which of the graph's inputs lies there; nothing for what a node made.
  GraphInput* input_at(Place place);
  /// The number of the input, where the argument is one.
  std::optional<std::size_t> input_number(const Input& input) const;

  const Archive& archive_;
  const nlohmann::json& module_;
  const nlohmann::json& graph_;
  Graph result_;
  std::map<std::string, Place, std::less<>> places_;
  std::map<Place, std::size_t> input_of_place_;
  std::map<Place, Place> origin_;     ///< of a view of an input: that input
  std::vector<std::string> targets_;  ///< of the nodes that were kept
  std::string images_name_;
};

/// Calls `action` with each place that an argument reads.
template <class Action>
void for_each_place(const Input& input, const Action& action) {
  if (const auto* value = std::get_if<Value>(&input)) action(value->place);
  if (const auto* number = std::get_if<NumberAsTensor>(&input)) action(number->place);
  if (const auto* numbers = std::get_if<Numbers>(&input)) {
    for (const auto& item : numbers->items) {
      if (const auto* value = std::get_if<Value>(&item)) action(value->place);
    }
  }
  if (const auto* tensors = std::get_if<Tensors>(&input)) {
    for (const auto& item : tensors->items) {
      if (item) action(*item);
    }
  }
}

}  // namespace gala::exported
