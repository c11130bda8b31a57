// Normalisation: our kernels against LibTorch's own operation.
#include "gala/model/cuda_norm.h"

#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>

#include "tests/cuda/device.h"
#include "tests/model/shared_norm_case.h"

namespace gala {
namespace {

class CudaNorm : public OnCuda {};

struct Inputs {
  at::Tensor input, scale, shift, mean, variance, weight, added;
  NormEnd end;
  std::int64_t counted = 0;  ///< of images, the first ones; 0: all

  Inputs(std::int64_t images, std::int64_t channels, std::int64_t size, at::ScalarType type) {
    at::manual_seed(4);
    const auto device = at::TensorOptions(at::kCUDA);
    input = at::randn({images, channels, size, size}, device)
                .to(type)
                .contiguous(at::MemoryFormat::ChannelsLast);
    weight = at::randn({images, channels, size, size}, device)
                 .to(type)
                 .contiguous(at::MemoryFormat::ChannelsLast);
    added = at::randn({images, channels, size, size}, device)
                .to(type)
                .contiguous(at::MemoryFormat::ChannelsLast);
    scale = at::randn({channels}, device) + 1;
    shift = at::randn({channels}, device);
    mean = at::randn({channels}, device);
    variance = at::rand({channels}, device) + 0.1;
    for (at::Tensor* leaf : {&input, &scale, &shift, &added}) leaf->requires_grad_();
  }
  /// Output and gradients under one of two implementations.
  template <class Norm>
  std::vector<at::Tensor> run(const Norm& norm) {
    for (at::Tensor* leaf : {&input, &scale, &shift, &added}) leaf->mutable_grad() = at::Tensor();
    const at::Tensor output = norm(*this);
    (output * weight).sum(at::kDouble).backward();
    std::vector<at::Tensor> results = {output.detach(), input.grad(), scale.grad(), shift.grad()};
    if (end.added.defined()) results.push_back(added.grad());
    return results;
  }
};

using Norm = at::Tensor(const Inputs& in);

at::Tensor ours(const Inputs& in) {
  return cuda_norm(in.input, in.scale, in.shift, in.mean, in.variance, 1e-5, in.end);
}

at::Tensor finished(at::Tensor result, const NormEnd& end) {
  if (end.added.defined()) result = result + end.added.to(at::kFloat);
  return end.relu ? at::relu(result) : result;
}

/// In float32, so that the difference is that of our last rounding alone.
at::Tensor theirs(const Inputs& in) {
  return finished(at::batch_norm(in.input.to(at::kFloat), in.scale, in.shift, in.mean, in.variance,
                                 false, 0, 1e-5, true),
                  in.end);
}

at::Tensor ours_of_batch(const Inputs& in) {
  at::Tensor counted;
  if (in.counted > 0) counted = at::full({}, in.counted, in.input.options().dtype(at::kLong));
  return cuda_batch_norm(in.input, in.scale, in.shift, 1e-5, in.end, counted);
}

/// In float64, by plain sums over the images that count; the others are normalised alike.
at::Tensor theirs_of_batch(const Inputs& in) {
  const at::Tensor input = in.input.to(at::kDouble);
  const at::Tensor first = in.counted > 0 ? input.narrow(0, 0, in.counted) : input;
  const auto [variance, mean] = at::var_mean(first, at::IntArrayRef{0, 2, 3}, at::Scalar(0), true);
  const at::Tensor even = (input - mean) * at::rsqrt(variance + 1e-5);
  const auto wide = [](const at::Tensor& channel) {
    return channel.to(at::kDouble).view({1, -1, 1, 1});
  };
  return finished(even * wide(in.scale) + wide(in.shift), in.end);
}

/// Every result of ours near that of LibTorch. Where a value lies within rounding of the relu's edge
/// either gradient is right, so none is asked for there.
void compare(Inputs inputs, at::ScalarType type, const std::string& what, Norm* ours,
             Norm* theirs) {
  if (inputs.end.relu) {
    Inputs open = inputs;
    open.end.relu = false;
    inputs.weight = inputs.weight.masked_fill(theirs(open).detach().abs() < 1e-3, 0);
  }
  const auto found = inputs.run(ours), expected = inputs.run(theirs);
  ASSERT_EQ(found.size(), expected.size());
  const double tolerance = type == at::kFloat ? 2e-5 : 2e-2;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double scale = expected[i].abs().max().item<double>() + 1e-3;
    const double difference =
        (found[i].to(at::kFloat) - expected[i].to(at::kFloat)).abs().max().item<double>();
    EXPECT_LT(difference, tolerance * scale) << "result " << i << " of " << what;
  }
  EXPECT_TRUE(found[1].is_contiguous(at::MemoryFormat::ChannelsLast));
}

TEST_F(CudaNorm, IsLibTorchsNormForwardAndBackwardWithWhatFollowsIt) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    for (const std::int64_t channels : {4, 12, 64, 160, 640, 1024, 1100, 2048}) {
      for (const auto& [images, size] : {std::pair{1, 1}, {1, 7}, {3, 14}, {16, 28}}) {
        Inputs inputs(images, channels, size, type);
        for (const bool relu : {false, true}) {
          for (const bool adds : {false, true}) {
            inputs.end = {relu, adds ? inputs.added : at::Tensor()};
            compare(inputs, type,
                    fmt::format("{} channels, {} images of {}, relu {}, adds {}", channels, images,
                                size, relu, adds),
                    ours, theirs);
          }
        }
      }
    }
  }
}

/// Statistics of the batch, or of its first images: then the others come without gradient, as in a pass.
TEST_F(CudaNorm, TakesItsStatisticsFromTheImagesThatCount) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    for (const std::int64_t channels : {4, 12, 32, 160, 640, 1100}) {
      for (const auto& [images, size, counted] :
           {std::tuple{2, 7, 0}, {16, 28, 0}, {5, 3, 2}, {16, 28, 1}, {16, 28, 11}, {16, 28, 16}}) {
        Inputs inputs(images, channels, size, type);
        inputs.counted = counted;
        {
          const c10::NoGradGuard no_grad;
          inputs.input += 30;  // beside the deviation, the mean is large
          if (counted > 0) inputs.weight.narrow(0, counted, images - counted).zero_();
        }
        for (const bool relu : {false, true}) {
          for (const bool adds : {false, true}) {
            inputs.end = {relu, adds ? inputs.added : at::Tensor()};
            compare(inputs, type,
                    fmt::format("{} channels, {} of {} images of {}, relu {}, adds {}", channels,
                                counted, images, size, relu, adds),
                    ours_of_batch, theirs_of_batch);
          }
        }
      }
    }
  }
}

/// Mode `adaptive`: everything that one pass leaves behind, by the kernels on the GPU or by LibTorch on the host.
struct Adapted {
  std::vector<at::Tensor> results;  ///< output and gradients
  at::Tensor mean, variance, used;
};

Adapted adapt(const Inputs& given, at::Device device, bool update, bool has_source, double spread) {
  Inputs in = given;
  for (at::Tensor* tensor : {&in.input, &in.scale, &in.shift, &in.added}) {
    *tensor = tensor->detach().to(device).clone().requires_grad_();
  }
  if (device.is_cpu()) {  // in float32, whatever the maps are
    in.input = in.input.detach().to(at::kFloat).requires_grad_();
    in.added = in.added.detach().to(at::kFloat).requires_grad_();
  }
  in.weight = in.weight.to(device);
  if (in.end.added.defined()) in.end.added = in.added;
  at::Tensor mean = in.mean.to(device).clone(), variance = in.variance.to(device).clone(), counted;
  if (in.counted > 0)
    counted = at::full({}, in.counted, at::TensorOptions(device).dtype(at::kLong));
  NormSource source;
  if (has_source) {
    source.mean = mean * 0.5;
    source.variance = variance * 2;
  }
  source.spread = at::full({}, spread, at::TensorOptions(device).dtype(at::kFloat));
  std::vector<at::Tensor> used;
  source.used = &used;
  Adapted result;
  result.results = in.run([&](const Inputs& inputs) {
    return batch_norm(inputs.input, inputs.scale, inputs.shift, mean, variance,
                      NormMode::parse("adaptive:horizon=20,tolerance=0.7"), 1e-5, update,
                      inputs.end, counted, source);
  });
  result.mean = mean;
  result.variance = variance;
  result.used = used.at(0);
  return result;
}

TEST_F(CudaNorm, AdaptsAsOnTheHost) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    for (const std::int64_t channels : {4, 160, 1100}) {
      for (const auto& [images, counted, has_source, spread] : {std::tuple{8, 0, true, 1.0},
                                                                {8, 0, false, 3.0},
                                                                {8, 5, true, 1.0},
                                                                {30, 0, true, 1.0}}) {
        for (const bool relu : {false, true}) {
          for (const bool adds : {false, true}) {
            Inputs inputs(images, channels, 6, type);
            inputs.end = {relu, adds ? inputs.added : at::Tensor()};
            inputs.counted = counted;
            const c10::NoGradGuard no_grad;
            if (counted > 0) inputs.weight.narrow(0, counted, images - counted).zero_();
            if (relu) {  // at the edge either gradient is right
              Inputs open = inputs;
              open.end.relu = false;
              const c10::AutoGradMode with_gradients(true);
              const at::Tensor result = adapt(open, at::kCPU, false, has_source, spread).results[0];
              inputs.weight = inputs.weight.masked_fill(result.abs().lt(1e-3).to(at::kCUDA), 0);
            }
            const c10::AutoGradMode with_gradients(true);
            const bool update = !adds;
            const Adapted expected = adapt(inputs, at::kCPU, update, has_source, spread);
            const Adapted found = adapt(inputs, at::kCUDA, update, has_source, spread);
            const std::string what = fmt::format("{} of {} images, {} channels, relu {}, adds {}",
                                                 counted, images, channels, relu, adds);
            const double tolerance = type == at::kFloat ? 3e-5 : 2e-2;
            const auto near = [&](const at::Tensor& a, const at::Tensor& b, double bound,
                                  double least) {
              const at::Tensor host = a.to(at::kCPU).to(at::kFloat);
              const double scale = std::max(b.abs().max().item<double>(), least);
              EXPECT_LT((host - b.to(at::kFloat)).abs().max().item<double>(), bound * scale)
                  << what;
            };
            for (std::size_t i = 0; i < expected.results.size(); ++i) {
              near(found.results[i], expected.results[i], tolerance, 1e-3);
            }
            near(found.mean, expected.mean, 1e-5, 1);
            near(found.variance, expected.variance, 1e-5, 1);
            near(found.used, expected.used, 1e-5, 1);
            EXPECT_EQ(found.mean.cpu().equal(inputs.mean.cpu()), !update);
          }
        }
      }
    }
  }
}

TEST_F(CudaNorm, OfSeveralProcessesIsTheNormOfTheWholeBatch) {
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    test::expect_the_whole_batch(2, 4, 6, at::kFloat, format, 1e-5, at::kCUDA);
    test::expect_the_whole_batch(3, 4, 6, at::kFloat, format, 1e-5, at::kCUDA);
    test::expect_the_whole_batch(2, 4, 6, at::kBFloat16, format, 1e-2, at::kCUDA);
  }
}

TEST_F(CudaNorm, IsFiniteWhereNoImageCounts) {
  Inputs inputs(4, 8, 3, at::kFloat);
  const at::Tensor none = at::zeros({}, inputs.input.options().dtype(at::kLong));
  const at::Tensor result =
      cuda_batch_norm(inputs.input, inputs.scale, inputs.shift, 1e-5, {}, none);
  EXPECT_TRUE(at::isfinite(result).all().item<bool>());
  (result * 0).sum().backward();
  EXPECT_EQ(inputs.input.grad().abs().max().item<double>(), 0);
}

TEST_F(CudaNorm, GivesTheSameBitsEveryTime) {
  Inputs inputs(32, 64, 56, at::kFloat);
  inputs.end = {true, inputs.added};
  const auto first = inputs.run(ours);
  for (int i = 0; i < 5; ++i) {
    const auto again = inputs.run(ours);
    for (std::size_t k = 0; k < first.size(); ++k) EXPECT_TRUE(at::equal(first[k], again[k]));
  }
}

TEST_F(CudaNorm, LeavesOtherLayoutsTypesAndWidthsToLibTorch) {
  const Inputs good(2, 8, 4, at::kFloat), odd(2, 6, 4, at::kFloat);
  EXPECT_TRUE(ours(good).defined());
  EXPECT_FALSE(ours(odd).defined());
  EXPECT_FALSE(cuda_norm(good.input.detach().contiguous(), good.scale, good.shift, good.mean,
                         good.variance, 1e-5)
                   .defined());
  EXPECT_FALSE(cuda_norm(good.input, good.scale, good.shift, good.mean, good.variance, 1e-5,
                         {false, good.added.detach().contiguous()})
                   .defined());
  EXPECT_FALSE(cuda_norm(good.input.detach().to(at::kHalf), good.scale, good.shift, good.mean,
                         good.variance, 1e-5)
                   .defined());
}

}  // namespace
}  // namespace gala
