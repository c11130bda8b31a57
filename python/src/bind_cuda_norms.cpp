// Batch normalisation of channels-last maps on a GPU, by the program's own kernels. Everything is queued on the
// caller's stream, and nothing is allocated here: so a captured pass holds all of it.
#include <cuda_bf16.h>
#include <nanobind/stl/array.h>

#include <array>

#include "gala/model/cuda_norm_kernels.h"
#include "python/src/bind.h"
#include "python/src/cuda_workspace.h"

namespace nb = nanobind;

namespace gala::python {
namespace {

template <class T>
T* at(std::uintptr_t address) {
  return reinterpret_cast<T*>(address);
}

/// Calls `use` with a null pointer of the type of the maps.
template <class Use>
void with_type(bool bfloat16, const Use& use) {
  if (bfloat16) {
    use(static_cast<__nv_bfloat16*>(nullptr));
  } else {
    use(static_cast<float*>(nullptr));
  }
}

/// Scale, shift, mean and variance.
using Addresses = std::array<std::uintptr_t, 4>;

/// The norm of maps of one shape on one stream.
class CudaNorm {
 public:
  CudaNorm(int device, std::uintptr_t stream, std::int64_t rows, std::int64_t channels,
           double epsilon, bool bfloat16)
      : device_(device),
        stream_(stream_at(stream)),
        shape_{rows, channels, static_cast<float>(epsilon)},
        bfloat16_(bfloat16) {}

  /// How many floats the parts of sums take.
  std::int64_t parts() const { return norm_parts(shape_) * 2 * shape_.channels; }

  void statistics(std::uintptr_t input, std::uintptr_t parts, std::uintptr_t mean,
                  std::uintptr_t variance) const {
    const CurrentDevice current(device_);
    with_type(bfloat16_, [&]<class T>(T*) {
      queue_norm_statistics(shape_, NormCount{}, at<const T>(input), at<float>(parts),
                            at<float>(mean), at<float>(variance), stream_);
    });
  }

  void forward(const Addresses& parameters, std::uintptr_t input, std::uintptr_t output) const {
    const CurrentDevice current(device_);
    with_type(bfloat16_, [&]<class T>(T*) {
      NormMaps<T> maps{};
      maps.input = at<const T>(input);
      maps.output = at<T>(output);
      queue_norm(shape_, parameters_of(parameters), maps, stream_);
    });
  }

  /// `own`: the statistics are those of the maps themselves.
  void backward(bool own, const Addresses& parameters, std::uintptr_t input,
                std::uintptr_t output_gradient, std::uintptr_t input_gradient, std::uintptr_t parts,
                std::uintptr_t scale_gradient, std::uintptr_t shift_gradient) const {
    const CurrentDevice current(device_);
    with_type(bfloat16_, [&]<class T>(T*) {
      NormMaps<T> maps{};
      maps.input = at<const T>(input);
      maps.output_gradient = at<const T>(output_gradient);
      maps.input_gradient = at<T>(input_gradient);
      if (own) {
        queue_batch_norm_backward(shape_, NormCount{}, parameters_of(parameters), NormPull{}, maps,
                                  at<float>(parts), at<float>(scale_gradient),
                                  at<float>(shift_gradient), stream_);
      } else {
        queue_norm_backward(shape_, parameters_of(parameters), maps, at<float>(parts),
                            at<float>(scale_gradient), at<float>(shift_gradient), stream_);
      }
    });
  }

 private:
  static NormParameters parameters_of(const Addresses& addresses) {
    return {at<const float>(addresses[0]), at<const float>(addresses[1]),
            at<const float>(addresses[2]), at<const float>(addresses[3])};
  }

  int device_;
  cudaStream_t stream_;
  NormShape shape_;
  bool bfloat16_;
};

}  // namespace

void bind_cuda_norms(nb::module_& m) {
  nb::class_<CudaNorm>(m, "Norm")
      .def(nb::init<int, std::uintptr_t, std::int64_t, std::int64_t, double, bool>())
      .def("parts", &CudaNorm::parts)
      .def("statistics", &CudaNorm::statistics)
      .def("forward", &CudaNorm::forward)
      .def("backward", &CudaNorm::backward);
}

}  // namespace gala::python
