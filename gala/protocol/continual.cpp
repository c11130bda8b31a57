#include "gala/protocol/continual.h"

#include <filesystem>

#include "gala/data/data_paths.h"

namespace gala {

RunDefaults ContinualProtocol::defaults() const {
  if (options_.set == ContinualSet::kImageNet) {
    return {.stream = "continual",
            .batch_size = 64,
            .method = {.optimizer = "sgd:rate=0.00025,momentum=0.9,nesterov=yes", .norm = "batch"}};
  }
  return {.stream = "continual",
          .batch_size = 200,
          .method = {.optimizer = "adam:rate=0.001", .norm = "batch"}};
}

DataSource ContinualProtocol::open_corrupted() const {
  const std::string set = format_value(options_.set);
  const bool missing =
      !options_.generate && !options_.path.empty() && !std::filesystem::exists(options_.path);
  if (missing && options_.set == ContinualSet::kImageNet) {
    fail<ConfigError>(
        "{} is missing; the published folders go there, or make the pictures on the way: "
        "path=FOLDER,generate=yes with that of the clean validation pictures",
        options_.path);
  }
  if (missing) {
    fail<ConfigError>(
        "{} is missing; the published arrays go there, or make them: gala corrupt --data "
        "{}:path={} "
        "--corruption {} --severity {} --out {}",
        options_.path, set, options_.clean.empty() ? "CLEAN" : options_.clean, options_.corruption,
        options_.severity, options_.path);
  }
  return open_data({set + "c",
                    {{"path", options_.path},
                     {"corruption", options_.corruption},
                     {"severity", options_.severity},
                     {"generate", format_value(options_.generate)},
                     {"seed", format_value(options_.seed)},
                     {"frost", options_.frost}}});
}

std::optional<DataSource> ContinualProtocol::open_clean() const {
  const std::string& path =
      options_.clean.empty() && options_.generate ? options_.path : options_.clean;
  if (path.empty()) return std::nullopt;
  Spec spec{format_value(options_.set), {{"path", path}}};
  if (options_.set != ContinualSet::kImageNet) spec.set("split", "test");
  DataSource clean = open_data(spec);
  clean.domains.front().name = "clean";
  limit_images(clean, options_.images);
  return clean;
}

TestBed ContinualProtocol::open() const {
  TestBed bed;
  bed.protocol = without_paths(options_to_spec("continual", options_), Options::kPaths);
  constexpr std::string_view kNames[] = {"CIFAR-10", "CIFAR-100", "ImageNet"};
  bed.dataset = kNames[static_cast<std::size_t>(options_.set)];
  const bool corrupted = options_.corruption != "none";
  if (corrupted) {
    bed.target = open_corrupted();
    limit_images(bed.target, options_.images);
    bed.dataset += "-C";
  }
  bed.source = open_clean();
  if (!corrupted) {
    if (!bed.source) {
      fail<ConfigError>("corruption=none needs the clean test set: clean=FOLDER is missing");
    }
    bed.target = *bed.source;
  }
  bed.data = without_paths(bed.target.spec, data_paths(bed.target.spec.name));
  return bed;
}

}  // namespace gala
