#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

namespace gala {

/// Maps of `rows` places with `channels` values each, side by side; the number of channels is a
/// multiple of four.
struct NormShape {
  std::int64_t rows;
  std::int64_t channels;
  float epsilon;
};

/// Statistics and affine part, float32, one value a channel.
struct NormParameters {
  const float* scale;
  const float* shift;
  const float* mean;
  const float* variance;
};

/// Of how many images statistics are made: the first ones, as many as the number on the device says.
struct NormCount {
  const std::int64_t* images;  ///< null: all
  std::int64_t rows_per_image;
};

/// Parts of the sums over places that a pass leaves: rows of 2 · channels floats.
std::int64_t norm_parts(const NormShape& shape);

/// The maps of a pass. T is float or __nv_bfloat16.
template <class T>
struct NormMaps {
  const T* input;
  T* output;       ///< backward: read, and only where something was added
  const T* added;  ///< forward: or null
  const T* output_gradient;
  T* input_gradient;
  T* added_gradient;  ///< backward: null where nothing was added
  bool relu;
};

template <class T>
void queue_norm(const NormShape& shape, const NormParameters& parameters, const NormMaps<T>& maps,
                cudaStream_t stream);
/// `parts` holds norm_parts rows; the gradients of scale and shift are float32.
template <class T>
void queue_norm_backward(const NormShape& shape, const NormParameters& parameters,
                         const NormMaps<T>& maps, float* parts, float* scale_gradient,
                         float* shift_gradient, cudaStream_t stream);

/// Mean and biased variance of the places that count, one value a channel.
template <class T>
void queue_norm_statistics(const NormShape& shape, const NormCount& count, const T* input,
                           float* parts, float* mean, float* variance, cudaStream_t stream);
/// How statistics that are not the maps' own, but follow them, pull at the gradient: `share` says by how much each
/// moves with the maps' own, whose mean is `mean`; one value a channel. Nulls: they are the maps' own.
struct NormPull {
  const float* mean = nullptr;
  const float* share = nullptr;
};

/// As queue_norm_backward, where the parameters' statistics are those of the maps themselves. What does not
/// count must come with gradients of zero.
template <class T>
void queue_batch_norm_backward(const NormShape& shape, const NormCount& count,
                               const NormParameters& parameters, const NormPull& pull,
                               const NormMaps<T>& maps, float* parts, float* scale_gradient,
                               float* shift_gradient, cudaStream_t stream);

/// Norm mode `adaptive` (gala/model/norm.h) between the statistics of the maps and those that are used. Float32, one
/// value a channel where nothing else is said.
struct NormAdaption {
  std::int64_t channels;
  float epsilon;
  float tolerance;
  float images;  ///< of the batch
  float horizon;
  const std::int64_t* counted;  ///< how many of them make statistics, or null: all
  const float* spread;          ///< a number, or null: 1
  bool update;                  ///< whether the running statistics move
  const float *batch_mean, *batch_variance;
  float *running_mean, *running_variance;
  const float *source_mean, *source_variance;  ///< or null: the running ones before they move
  float *mean, *variance;                      ///< what is used
  float* pull;                                 ///< see NormPull
  float* weight;                               ///< a number: w
};
void queue_norm_adaption(const NormAdaption& task, cudaStream_t stream);

}  // namespace gala
