#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "gala/model/exported/numbers.h"
#include "gala/model/layers.h"

namespace gala::exported {

/// Where a value of a program lies while it runs.
using Place = std::size_t;

// Where an argument of a node comes from.

struct Constant {
  c10::IValue value;
};
struct Value {
  Place place = 0;
};
/// A number that stands where the operator takes a tensor.
struct NumberAsTensor {
  Place place = 0;
};
/// The device of the network, wherever it was when it was exported.
struct ModelDevice {};
/// Whole numbers, some of which are known only when the program runs.
struct Numbers {
  std::vector<std::variant<std::int64_t, Value>> items;
};
struct Tensors {
  std::vector<std::optional<Place>> items;
  bool optional = false;  ///< the operator takes a list in which tensors may be missing
};
using Input = std::variant<Constant, Value, NumberAsTensor, ModelDevice, Numbers, Tensors>;

/// Where one result of a node goes: a place, places for the parts of a list, or nowhere.
struct Result {
  bool is_list = false;
  std::vector<Place> places = {};
};

struct Node {
  enum class Kind {
    kOperator,  ///< an operator of LibTorch, through its dispatcher
    kNorm,      ///< batch normalisation, by ours
    kPool,      ///< the pooling of a ResNet's stem, by ours where that takes the maps
    kNumber,    ///< arithmetic on sizes
    kSame       ///< nothing is done: the result is the first input
  };

  Kind kind = Kind::kOperator;
  std::string name;                                   ///< in the file: "conv2d_1"
  std::optional<c10::OperatorHandle> operation = {};  ///< of an operator
  NumberOperation number = nullptr;
  std::size_t norm = 0;  ///< which of the norms
  bool adds = false;     ///< the second input is added to what the norm gives
  bool relu = false;     ///< a relu follows at once
  std::vector<Input> inputs =
      {};  ///< one for each argument of the operator, defaults included; of a norm that adds, two
  std::vector<Result> results = {};
  std::vector<Place> dies = {};  ///< what nobody asks for after this node
};

/// What a pass through the program needs beside its values.
struct Surroundings {
  at::Device device = at::kCPU;
  NormPass pass = {};
  std::int64_t images = 1;
  std::span<const BatchNorm> norms = {};
};

/// Runs nodes one after the other. Every place that they read and do not write must hold a value.
void run(std::span<const Node> nodes, std::vector<c10::IValue>& values,
         const Surroundings& surroundings);

}  // namespace gala::exported
