#pragma once
#include <cuda_runtime_api.h>

#include "gala/optim/sweep_kernels.h"

namespace gala {

/// Elements of a chunk on a GPU: four times four for each of the 512 threads that share it.
constexpr std::int64_t kCudaChunk = 8192;
/// The pointers to the gradients travel as a kernel's arguments, so that a captured graph holds
/// them; there is room for 32 KB of arguments.
constexpr std::size_t kMostCudaTensors = 3968;

/// A pass over device memory.
template <class Rule>
struct CudaPass {
  SweepView<Rule> view;
  const SweepChunk* chunks;         ///< in the order of the layers
  const std::int32_t* layer_begin;  ///< a layer's first chunk, and one past the last layer's last
  std::int32_t layer_count;
  std::int32_t chunk_count;
  Rule* rules;                           ///< measure: those of view, to be renewed
  const Rule* fresh_rules;               ///< measure: the rules of this step, in pinned memory
  double* parts;                         ///< kSumColumns for each chunk
  std::int32_t* broken;                  ///< 0 but while a gradient that is not finite is measured
  const float* weights;                  ///< apply: one for each layer, or null
  float weight;                          ///< apply: of every layer, where there are no weights
  std::int32_t first_chunk, last_chunk;  ///< apply: the chunks to look at
};

// `gradients` lies in host memory: a device pointer for each tensor, or null for zeros.
template <class Rule>
void queue_measure(const CudaPass<Rule>& pass, const float* const* gradients, std::size_t tensors,
                   const float* loss, double* table, cudaStream_t stream);
template <class Rule>
void queue_apply(const CudaPass<Rule>& pass, const float* const* gradients, std::size_t tensors,
                 cudaStream_t stream);

}  // namespace gala
