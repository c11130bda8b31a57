// A thousand steps over shifting images: the fast path must not change what adaptation achieves.
#include "gala/adapt/adapter.h"
#include "gala/data/loader.h"
#include "gala/data/stream.h"
#include "gala/model/weights.h"
#include "tests/cuda/device.h"

namespace gala {
namespace {

class CudaLongRun : public OnCuda {};

const std::string kAssets = GALA_TEST_SOURCE_DIR "/assets/";

struct Path {
  const char* name;
  bool record;
  Precision precision;
  at::MemoryFormat layout;
};

double error_of(const Path& path, const char* loss) {
  allow_tf32(path.precision);
  at::globalContext().setBenchmarkCuDNN(path.record);
  const auto model = make_model(Spec::parse("wide_resnet:depth=16,width=2,classes=10"));
  load_weights(*model, kAssets + "wrn16_2_cifar10.safetensors");
  model->to(at::kCUDA);
  model->set_norm_mode(NormMode::parse("batch"));
  model->set_precision(path.precision);
  model->set_memory_format(path.layout);
  Adapter adapter(*model, {.loss = loss}, {.capture = path.record});
  Spec data = Spec::parse("cifar10c:generate=yes,severity=5");
  data.set("path", kAssets + "cifar10_test_2000.png");
  data.set("corruption",
           "gaussian_noise,shot_noise,defocus_blur,motion_blur,snow,fog,brightness,contrast,"
           "pixelate,jpeg_compression");
  const Stream stream = make_stream(Spec::parse("continual"), open_data(data), 0);
  Loader loader(stream, model->preprocessing(), {.batch_size = 20});
  std::int64_t wrong = 0, images = 0;
  while (const std::optional<Batch> batch = loader.next()) {
    const Answer answer = adapter.answer(batch->images);
    for (std::size_t i = 0; i < answer.predictions.size(); ++i) {
      wrong += answer.predictions[i] != batch->labels[i];
    }
    images += batch->size();
  }
  EXPECT_EQ(adapter.totals().steps, 1000);
  EXPECT_EQ(adapter.capture_problem(), "");
  at::globalContext().setBenchmarkCuDNN(false);
  return 100.0 * static_cast<double>(wrong) / static_cast<double>(images);
}

TEST_F(CudaLongRun, HasTheSameErrorWithTheFastPathOnAndOff) {
  constexpr auto kRows = at::MemoryFormat::Contiguous, kLast = at::MemoryFormat::ChannelsLast;
  for (const char* loss : {"pseudo_label", "shot"}) {
    const double plain = error_of({"plain", false, Precision::kFloat32, kRows}, loss);
    for (const Path& path : {Path{"recorded", true, Precision::kFloat32, kRows},
                             Path{"recorded, tf32", true, Precision::kTf32, kLast},
                             Path{"recorded, bf16", true, Precision::kBf16, kLast}}) {
      const double error = error_of(path, loss);
      RecordProperty(std::string(loss) + " " + path.name, std::to_string(error));
      std::cout << loss << ", " << path.name << ": " << error << " %, plain " << plain << " %\n";
      // Three standard deviations of a difference of two shares of 20,000 are 1.3 points.
      EXPECT_NEAR(error, plain, 1.3) << path.name;
    }
  }
}

}  // namespace
}  // namespace gala
