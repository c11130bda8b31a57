#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gala/model/exported/archive.h"
#include "gala/model/exported/program.h"
#include "gala/model/model.h"

namespace gala::exported {

/// A tensor that is there before the first node.
struct GraphInput {
  enum class Role { kImages, kParameter, kBuffer, kConstant };

  Role role = Role::kConstant;
  std::string name = {};  ///< as in weight files; empty for the images
  Place place = 0;
  bool used = false;
  bool statistic = false;                ///< a running statistic of a norm that is ours
  ModuleKind kind = ModuleKind::kOther;  ///< of a parameter: what its first use makes of it
};

/// A batch normalisation that is ours. Numbers are those of the graph's inputs.
struct GraphNorm {
  std::optional<std::size_t> scale, shift;
  std::size_t running_mean = 0, running_var = 0;
  double epsilon = 1e-5;
};

/// A network as its file has it, every operator found. `inputs` come without repetition: tied weights
/// are one.
struct Graph {
  std::vector<Node> nodes = {};
  std::size_t places = 0;
  std::vector<GraphInput> inputs = {};
  std::vector<std::size_t> parameters =
      {};                                ///< those of the inputs that are used, in forward order
  std::vector<std::string> unused = {};  ///< names of parameters that no node reads
  std::vector<GraphNorm> norms = {};
  Place images = 0, features = 0, logits = 0;
  std::size_t head = 0;                       ///< the node of the last linear layer
  std::vector<std::size_t> head_inputs = {};  ///< its parameters
  bool writes_images = false;                 ///< a node changes them in place
  bool gives_shares = false;                  ///< the last thing done is a softmax
  std::int64_t classes = 0;
  std::int64_t height = 0, width = 0;  ///< of the images; 0 where any will do
  std::int64_t most_images = 0;        ///< in a batch; 0 where any number will do
};

/// Throws FormatError, with the node and what to do about it where that is known.
Graph read_graph(const Archive& archive);

}  // namespace gala::exported
