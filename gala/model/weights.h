#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "gala/model/model.h"
#include "gala/tensor/arena.h"

namespace gala {

/// Named tensors from a file, and what the file says about them (the JSON under the metadata key
/// `gala`, an empty object when there is none).
struct WeightFile {
  std::vector<NamedTensor> tensors;
  nlohmann::json metadata = nlohmann::json::object();
};

/// Reads safetensors or a PyTorch checkpoint (told apart by content). Nothing in it is executed.
WeightFile read_weights(const std::filesystem::path& path);

/// The metadata alone; a PyTorch checkpoint has none. The tensors are not read.
nlohmann::json read_weight_metadata(const std::filesystem::path& path);

/// What loading a file found, beside the values.
struct LoadedWeights {
  bool preprocessing = false;          ///< the file carried it
  std::string prefix;                  ///< taken off every name, such as "module."; mostly empty
  std::vector<std::string> not_taken;  ///< tensors of another head, as "fc.weight [1000, 512]"
};

/// Reads a file into a network: values, preprocessing and class names. A mismatch throws FormatError
/// that lists missing, unexpected and wrongly shaped names. float16 and bfloat16 become float32.
/// Where no name fits as it stands and all fit behind one prefix, as wrappers put it there (`module.`,
/// `model.`, `backbone.`), that is taken off. Buffers `mu` and `sigma` (RobustBench's input
/// normalisation, [1, 3, 1, 1] or [3]) become mean and std of the preprocessing, unless metadata names
/// it.
LoadedWeights load_weights(Model& model, const std::filesystem::path& path);

/// Reads a file to start training from. As load_weights, but a head for another number of classes is
/// left aside, with the names of its classes; the network keeps its own.
LoadedWeights load_first_weights(Model& model, const std::filesystem::path& path);

struct SaveOptions {
  at::ScalarType type = at::ScalarType::Float;         ///< of the numbers in the file
  nlohmann::json metadata = nlohmann::json::object();  ///< joined to what is written anyway
};

/// The name of the first parameter or buffer that holds a value that is not finite; empty: none does.
std::string first_not_finite(const Model& model);

/// Writes parameters, buffers, preprocessing and class names as safetensors, atomically. Throws Error,
/// and writes nothing, where a value is not finite: nobody could load that.
void save_weights(const Model& model, const std::filesystem::path& path,
                  const SaveOptions& options = {});

/// SHA-256 over names, shapes and values of all parameters and buffers.
std::string weight_hash(const Model& model);

}  // namespace gala
