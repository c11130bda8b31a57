#include "gala/data/loader.h"

#include <ATen/ATen.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <set>
#include <system_error>
#include <thread>

#include "gala/base/random.h"
#include "gala/data/augment.h"
#include "support.h"

namespace gala {
namespace {

using test::counting_pictures;
using test::fixture;
using test::message_of;
using test::read_text;
using test::TemporaryFolder;
using test::write_text;

Preprocessing plain(std::int64_t size) {
  Preprocessing preprocessing;
  preprocessing.size = size;
  return preprocessing;
}

Stream stream_over(std::shared_ptr<const Dataset> data, const std::string& spec = "single") {
  return make_stream(Spec::parse(spec), {{}, {{"only", std::move(data)}}}, 1);
}

/// Pictures of 3 x 1 x 2 floats, one of which is not a number.
class FloatPictures : public Dataset {
 public:
  explicit FloatPictures(std::int64_t broken = -1) : broken_(broken) {}
  std::int64_t size() const override { return 20; }
  std::int64_t label(std::int64_t) const override { return -1; }
  std::array<std::int64_t, 2> plane_size() const override { return {1, 2}; }
  void read(std::int64_t index, Image& into) const override {
    into.pixels.clear();
    into.height = 1, into.width = 2;
    into.planes.assign(6, static_cast<float>(index));
    if (index == broken_) into.planes[5] = std::numeric_limits<float>::quiet_NaN();
  }
  std::string item_name(std::int64_t index) const override { return fmt::format("f{}", index); }
  void hash_item(std::int64_t, Sha256&) const override {}

 private:
  std::int64_t broken_;
};

/// Bytes of address space that this process has.
rlim_t address_space() {
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return static_cast<rlim_t>(pages) * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}

TEST(Loader, ThreadsThatTheSystemDoesNotGrantAreAnError) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer needs the address space for itself";
#endif
  const Stream stream = stream_over(std::make_shared<FloatPictures>());
  const auto with_little_room = [&] {
    const rlim_t most = address_space() + (std::size_t{256} << 20);
    const rlimit limit{most, most};
    ::setrlimit(RLIMIT_AS, &limit);
    ::alarm(20);  // where those that were granted are waited for in vain
    try {
      const Loader loader(stream, plain(2), {.batch_size = 5, .threads = 1024});
    } catch (const std::system_error&) {
      std::_Exit(3);
    }
    std::_Exit(0);
  };
  EXPECT_EXIT(with_little_room(), testing::ExitedWithCode(3), "");
}

TEST(Loader, TellsWhatFloatsWereGivenOut) {
  const Stream stream = stream_over(std::make_shared<FloatPictures>(/*broken=*/7));
  for (int threads : {0, 2}) {
    Loader loader(stream, plain(2), {.batch_size = 5, .threads = threads});
    EXPECT_TRUE(loader.float_range().empty());
    ASSERT_TRUE(loader.next());
    EXPECT_EQ(loader.float_range().low, 0);
    EXPECT_EQ(loader.float_range().high, 4);
    EXPECT_EQ(loader.float_range().not_finite, 0);
    ASSERT_TRUE(loader.next());
    EXPECT_EQ(loader.float_range().high, 9);
    EXPECT_EQ(loader.float_range().not_finite, 1);
    EXPECT_EQ(loader.float_range().first_not_finite, "f7");
  }
  const Stream bytes = stream_over(counting_pictures(3, 0));
  Loader loader(bytes, plain(2), {.batch_size = 3});
  ASSERT_TRUE(loader.next());
  EXPECT_TRUE(loader.float_range().empty());
}

TEST(FloatRange, IsMeasuredByWhatTheNetworkExpects) {
  const auto said = [](const Preprocessing& preprocessing, const std::vector<float>& values) {
    FloatRange range;
    range.include(range_of(values), "x");
    FloatRangeWatch watch(preprocessing);
    std::vector<std::string> news = watch.look(range);
    EXPECT_TRUE(watch.look(range).empty()) << "said twice";
    return fmt::format("{}", fmt::join(news, "|"));
  };
  EXPECT_EQ(said(plain(2), {0, 1}), "");
  EXPECT_EQ(said(plain(2), {-0.3F, 1.3F}), "");  // noise
  EXPECT_CONTAINS(said(plain(2), {0, 255}),
                  "values from 0 to 255, where this network was made for "
                  "about 0 to 1:");
  EXPECT_CONTAINS(said(plain(2), {0, 1e30F}), "values from 0 to 1e+30");
  EXPECT_CONTAINS(said(plain(2), {-1, 1}), "values from -1 to 1");
  EXPECT_EQ(said(Preprocessing::imagenet(), {-2.1F, 2.6F}), "");
  EXPECT_CONTAINS(said(Preprocessing::imagenet(), {0, 255}), "about -2.12 to 2.64 (pixels from");
  EXPECT_EQ(said(plain(2), {0, std::numeric_limits<float>::infinity()}),
            "pictures hold values that are not finite numbers; the first: x");
}

/// Pictures that take a random while, and some of which cannot be read.
class SlowPictures : public Dataset {
 public:
  SlowPictures(std::int64_t size, std::set<std::int64_t> broken, int microseconds)
      : size_(size), broken_(std::move(broken)), microseconds_(microseconds) {}
  std::int64_t size() const override { return size_; }
  std::int64_t label(std::int64_t) const override { return -1; }
  void read(std::int64_t index, Image& into) const override {
    ++reads;
    const auto wait = Random(3, "wait", {static_cast<std::uint64_t>(index)})
                          .below(static_cast<std::uint64_t>(microseconds_) + 1);
    std::this_thread::sleep_for(std::chrono::microseconds(wait));
    if (broken_.contains(index)) throw FormatError(item_name(index), "broken");
    into.shape_pixels(1, 1);
    std::fill(into.pixels.begin(), into.pixels.end(), static_cast<std::uint8_t>(index));
  }
  std::string item_name(std::int64_t index) const override { return fmt::format("p{}", index); }
  void hash_item(std::int64_t, Sha256&) const override {}

  mutable std::atomic<int> reads{0};

 private:
  std::int64_t size_;
  std::set<std::int64_t> broken_;
  int microseconds_;
};

std::vector<int> levels(const Batch& batch) {
  std::vector<int> found;
  for (std::int64_t i = 0; i < batch.size(); ++i) {
    found.push_back(static_cast<int>(std::lround(batch.images[i][0][0][0].item<float>() * 255)));
  }
  return found;
}

TEST(Loader, KeepsTheOrderOnAnyNumberOfThreads) {
  const Stream stream =
      stream_over(std::make_shared<SlowPictures>(203, std::set<std::int64_t>{}, 300));
  for (int threads : {0, 1, 2, 5}) {
    Loader loader(stream, plain(1), {.batch_size = 20, .threads = threads});
    std::int64_t position = 0, number = 0;
    while (const auto batch = loader.next()) {
      EXPECT_EQ(batch->number, number++);
      EXPECT_EQ(batch->images.sizes(), (std::vector<std::int64_t>{batch->size(), 3, 1, 1}));
      const auto found = levels(*batch);
      for (std::size_t i = 0; i < found.size(); ++i, ++position) {
        EXPECT_EQ(found[i], position);
        EXPECT_EQ(batch->positions[i], position);
      }
    }
    EXPECT_EQ(position, 203);
    EXPECT_EQ(number, 11);
    EXPECT_EQ(loader.batch_count(), 11);
    EXPECT_FALSE(loader.next());
  }
}

TEST(Loader, GivesLabelsAndDomains) {
  const Stream stream = stream_over(counting_pictures(5, 3));
  Loader loader(stream, plain(2), {.batch_size = 4, .threads = 1});
  const auto batch = loader.next();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->labels, (std::vector<std::int64_t>{0, 1, 2, 0}));
  EXPECT_EQ(batch->domains, (std::vector<std::int32_t>{0, 0, 0, 0}));
  EXPECT_EQ(loader.next()->size(), 1);
}

TEST(Loader, ThrowsTheFirstErrorAtItsBatchAndThenAgain) {
  const Stream stream =
      stream_over(std::make_shared<SlowPictures>(100, std::set<std::int64_t>{37, 33, 80}, 200));
  for (int threads : {0, 3}) {
    Loader loader(stream, plain(1), {.batch_size = 10, .threads = threads});
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(loader.next());
    EXPECT_EQ(message_of<FormatError>([&] { loader.next(); }), "p33: broken");
    EXPECT_EQ(message_of<FormatError>([&] { loader.next(); }), "p33: broken");
  }
}

TEST(Loader, SkipsAndCountsUnreadablePicturesWhenAsked) {
  const Stream stream =
      stream_over(std::make_shared<SlowPictures>(12, std::set<std::int64_t>{1, 4, 5, 6, 7}, 50));
  for (int threads : {0, 2}) {
    Loader loader(stream, plain(1), {.batch_size = 4, .threads = threads, .skip_unreadable = true});
    auto batch = loader.next();
    EXPECT_EQ(levels(*batch), (std::vector<int>{0, 2, 3}));
    EXPECT_EQ(batch->positions, (std::vector<std::int64_t>{0, 2, 3}));
    batch = loader.next();
    EXPECT_EQ(levels(*batch), (std::vector<int>{8, 9, 10, 11}));
    EXPECT_EQ(batch->number, 2);
    EXPECT_FALSE(loader.next());
    EXPECT_EQ(loader.skipped(), (std::vector<std::string>{"p1: broken", "p4: broken", "p5: broken",
                                                          "p6: broken", "p7: broken"}));
  }
}

TEST(Loader, NamesTheFileThatLies) {
  const TemporaryFolder folder;
  write_text(folder / "a/1.png", read_text(fixture("grey8.png")));
  write_text(folder / "a/2.png", "");
  const DataSource source = open_data(Spec{"folder", {{"path", folder.path().string()}}});
  const Stream stream = make_stream(Spec::parse("single"), source, 0);
  Loader loader(stream, plain(8), {.batch_size = 2});
  EXPECT_EQ(message_of<FormatError>([&] { loader.next(); }),
            (folder / "a/2.png").string() + ": the file is empty");
}

TEST(Loader, GoesOnWhereItIsTold) {
  const Stream stream = stream_over(counting_pictures(50, 2));
  Loader whole(stream, plain(2), {.batch_size = 8});
  for (int i = 0; i < 3; ++i) whole.next();
  Loader rest(stream, plain(2), {.batch_size = 8, .first_position = 24});
  while (const auto expected = whole.next()) {
    const auto batch = rest.next();
    ASSERT_TRUE(batch);
    EXPECT_EQ(batch->number, expected->number);
    EXPECT_TRUE(at::equal(batch->images, expected->images));
  }
  EXPECT_FALSE(rest.next());
  EXPECT_FALSE(Loader(stream, plain(2), {.batch_size = 8, .first_position = 50}).next());
  for (std::int64_t wrong : {-8, 3, 49, 56}) {
    EXPECT_CONTAINS(message_of<ConfigError>([&] {
                      Loader(stream, plain(2), {.batch_size = 8, .first_position = wrong});
                    }),
                    "does not begin a batch");
  }
}

TEST(Loader, WorksAheadOnlyAsFarAsAllowed) {
  const auto data = std::make_shared<SlowPictures>(1000, std::set<std::int64_t>{}, 0);
  const Stream stream = stream_over(data);
  Loader loader(stream, plain(1), {.batch_size = 10, .threads = 2, .prefetch = 3});
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(data->reads, 30);
  loader.next();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(data->reads, 40);
}

TEST(Loader, StopsAtOnceWhenDestroyed) {
  const auto data = std::make_shared<SlowPictures>(1000, std::set<std::int64_t>{}, 20000);
  const Stream stream = stream_over(data);
  const auto begin = std::chrono::steady_clock::now();
  {
    Loader loader(stream, plain(1), {.batch_size = 500, .threads = 2});
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  // 1000 pictures would take 5 s on two threads.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1000));
}

TEST(Loader, AugmentsAlikeOnAnyNumberOfThreadsAndAfterResuming) {
  const Stream stream = stream_over(counting_pictures(60, 3, 50));
  const DomainBedAugment augment(plain(6), 11);
  std::vector<at::Tensor> expected;
  Loader first(stream, augment, {.batch_size = 16, .threads = 0});
  while (auto batch = first.next()) expected.push_back(batch->images);
  ASSERT_EQ(expected.size(), 4u);
  EXPECT_FALSE(at::equal(expected[0][0], expected[1][0]));
  for (int threads : {1, 3}) {
    for (std::size_t begin : {0, 2}) {
      Loader loader(stream, augment,
                    {.batch_size = 16,
                     .threads = threads,
                     .first_position = static_cast<std::int64_t>(16 * begin)});
      for (std::size_t i = begin; i < 4; ++i)
        EXPECT_TRUE(at::equal(loader.next()->images, expected[i]));
      EXPECT_FALSE(loader.next());
    }
  }
}

TEST(Loader, ResizesOnlyWhatIsNotOfTheRightSize) {
  const Stream stream = stream_over(counting_pictures(3, 0, 100));
  Loader loader(stream, plain(5), {.batch_size = 3});
  const auto batch = loader.next();
  EXPECT_EQ(batch->images.sizes(), (std::vector<std::int64_t>{3, 3, 5, 5}));
  EXPECT_TRUE(at::allclose(batch->images[2], at::full({3, 5, 5}, 102 / 255.0f)));
}

}  // namespace
}  // namespace gala
