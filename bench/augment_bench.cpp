// Training images per second: reading, decoding, augmenting and normalising.
//   gala_bench_augment DATA none|crop_flip|augmix|domainbed [COUNT [THREADS]]
// DATA is a spec such as cifar10:path=FOLDER. Without THREADS on one core by the processor's time; with
// them in batches of 128 from the loader, by the clock. Prints a JSON line.
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "gala/base/stopwatch.h"
#include "gala/data/loader.h"
#include "gala/train/setup.h"

namespace {

/// Seconds of one core for `count` images.
double on_one_core(const gala::Curriculum& curriculum, std::int64_t count) {
  const std::int64_t side = curriculum.transform->size();
  gala::Image image;
  gala::TransformScratch scratch;
  std::vector<float> out(static_cast<std::size_t>(3 * side * side));
  const std::clock_t begin = std::clock();
  for (std::int64_t i = 0; i < count; ++i) {
    const gala::StreamItem item = curriculum.stream.items[static_cast<std::size_t>(i)];
    curriculum.stream.domains[static_cast<std::size_t>(item.domain)].data->read(item.index, image);
    curriculum.transform->apply(image, static_cast<std::uint64_t>(i), 0, scratch, out.data());
  }
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

/// Seconds until the loader has given out `count` images.
double by_the_loader(const gala::Curriculum& curriculum, std::int64_t count, int threads) {
  gala::LoaderOptions options;
  options.batch_size = curriculum.batch_size;
  options.threads = threads;
  options.prefetch = 8;
  gala::Stopwatch watch;
  gala::Loader loader(curriculum.stream, *curriculum.transform, options);
  for (std::int64_t done = 0; done < count;) {
    const auto batch = loader.next();
    if (!batch) break;
    done += batch->size();
  }
  return watch.lap() / 1000;
}

void measure(const std::string& spec, const std::string& augmentation, std::int64_t count,
             int threads) {
  gala::TrainPlan plan;
  if (!gala::parse_value(augmentation, plan.data.augmentation)) {
    gala::fail<gala::ConfigError>("unknown augmentation {}", augmentation);
  }
  plan.train.batch_size = 128;
  plan.train.epochs = 1;
  gala::Training training;
  training.train = gala::open_data(gala::Spec::parse(spec));
  // The network gives the size of the images: 224 for DomainBed, 32 for CIFAR.
  const bool large = plan.data.augmentation == gala::Augmentation::kDomainBed;
  training.model = gala::make_model(gala::Spec::parse(large ? "resnet18" : "wide_resnet:depth=10"));
  const gala::Curriculum curriculum = gala::make_curriculum(training, plan);
  count = std::min(count, curriculum.stream.size() / plan.train.batch_size * plan.train.batch_size);
  // The first pass fills the file cache.
  double seconds = 0;
  for (int pass = 0; pass < 2; ++pass) {
    seconds =
        threads > 0 ? by_the_loader(curriculum, count, threads) : on_one_core(curriculum, count);
  }
  fmt::print(
      "{{\"augmentation\": \"{}\", \"threads\": {}, \"images\": {}, \"images_per_second\": "
      "{:.1f}}}\n",
      augmentation, threads, count, static_cast<double>(count) / seconds);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) {
    fmt::print(stderr, "usage: gala_bench_augment DATA AUGMENTATION [COUNT [THREADS]]\n");
    return 2;
  }
  measure(argv[1], argv[2], argc > 3 ? std::strtoll(argv[3], nullptr, 10) : 10000,
          argc > 4 ? static_cast<int>(std::strtol(argv[4], nullptr, 10)) : 0);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "gala_bench_augment: {}\n", error.what());
  return 1;
}
