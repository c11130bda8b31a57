// Batches that are copied ahead, against those of a loader for the CPU.
#include "gala/data/loader.h"

#include <ATen/ATen.h>

#include "tests/cuda/device.h"
#include "tests/data/support.h"

namespace gala {
namespace {

class CudaLoaderTest : public OnCuda {
 protected:
  static Stream make_pictures(std::int64_t count) {
    return make_stream(Spec::parse("single:order=shuffled"),
                       {{}, {{"only", test::counting_pictures(count, 10)}}}, 1);
  }
  static Preprocessing small() {
    Preprocessing preprocessing;
    preprocessing.size = 64;
    return preprocessing;
  }
};

TEST_F(CudaLoaderTest, GivesTheSameImagesWhileTheGpuIsBusy) {
  const Stream stream = make_pictures(250);
  for (const int threads : {0, 2}) {
    Loader here(stream, small(), {.batch_size = 8, .threads = threads});
    Loader there(stream, small(), {.batch_size = 8, .threads = threads, .device = at::kCUDA});
    const at::Tensor work = at::ones({4096, 4096}, at::TensorOptions(at::kCUDA));
    std::vector<at::Tensor> sums;
    std::vector<double> expected;
    while (const std::optional<Batch> batch = there.next()) {
      ASSERT_TRUE(batch->images.is_cuda());
      const std::optional<Batch> same = here.next();
      ASSERT_TRUE(same);
      EXPECT_EQ(batch->positions, same->positions);
      expected.push_back(same->images.to(at::kDouble).sum().item<double>());
      // Queued behind work that takes longer than the next copy: a copy into memory that is still
      // to be read would show here.
      const at::Tensor busy = at::mm(work, work).min();
      sums.push_back(batch->images.to(at::kDouble).sum() + busy * 0);
    }
    EXPECT_FALSE(here.next());
    ASSERT_EQ(sums.size(), 32);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      EXPECT_NEAR(sums[i].item<double>(), expected[i], 1e-6 * std::abs(expected[i])) << i;
    }
  }
}

TEST_F(CudaLoaderTest, WaitsForALargeCopyOnAnIdleGpu) {
  const Stream stream = make_pictures(2400);
  Preprocessing large;
  large.size = 256;
  Loader here(stream, large, {.batch_size = 200});
  Loader there(stream, large, {.batch_size = 200, .device = at::kCUDA});  // 157 MB each
  while (const std::optional<Batch> batch = there.next()) {
    const at::Tensor sums = batch->images.sum({1, 2, 3}, /*keepdim=*/false, at::kDouble).cpu();
    const at::Tensor expected = here.next()->images.sum({1, 2, 3}, false, at::kDouble);
    EXPECT_TRUE(at::allclose(sums, expected, 1e-6)) << batch->number;
  }
}

/// Pictures of one pixel, of which some cannot be read.
class BrokenPictures : public Dataset {
 public:
  std::int64_t size() const override { return 40; }
  std::int64_t label(std::int64_t) const override { return -1; }
  void read(std::int64_t index, Image& into) const override {
    if (index == 13 || index == 30) throw FormatError(item_name(index), "broken");
    into.shape_pixels(1, 1);
    std::fill(into.pixels.begin(), into.pixels.end(), static_cast<std::uint8_t>(index));
  }
  std::string item_name(std::int64_t index) const override { return fmt::format("p{}", index); }
  void hash_item(std::int64_t, Sha256&) const override {}
};

TEST_F(CudaLoaderTest, ABrokenPictureCountsAtItsOwnBatch) {
  const Stream stream =
      make_stream(Spec::parse("single"), {{}, {{"only", std::make_shared<BrokenPictures>()}}}, 1);
  LoaderOptions options{.batch_size = 4, .device = at::kCUDA};
  Loader stopped(stream, small(), options);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(stopped.next()->size(), 4) << i;
  EXPECT_EQ(test::message_of<FormatError>([&] { stopped.next(); }), "p13: broken");

  options.skip_unreadable = true;
  Loader loader(stream, small(), options);
  options.device = at::kCPU;
  Loader here(stream, small(), options);
  std::int64_t images = 0;
  while (const std::optional<Batch> batch = loader.next()) {
    EXPECT_TRUE(at::equal(batch->images.cpu(), here.next()->images)) << batch->number;
    images += batch->size();
    EXPECT_EQ(loader.skipped().size(), images > 27 ? 2U : images > 12 ? 1U : 0U) << images;
  }
  EXPECT_EQ(images, 38);
}

}  // namespace
}  // namespace gala
