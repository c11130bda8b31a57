#include "gala/protocol/continual.h"

#include <filesystem>

#include "gala/data/data_paths.h"

namespace gala {

RunDefaults ContinualProtocol::defaults() const {
  return {.stream = "continual",
          .batch_size = 200,
          .method = {.optimizer = "adam:rate=0.001", .norm = "batch"}};
}

DataSource ContinualProtocol::open_corrupted() const {
  const std::string set = format_value(options_.set);
  if (!options_.generate && !options_.path.empty() && !std::filesystem::exists(options_.path)) {
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
  DataSource clean = open_data({format_value(options_.set), {{"path", path}, {"split", "test"}}});
  clean.domains.front().name = "clean";
  limit_images(clean, options_.images);
  return clean;
}

TestBed ContinualProtocol::open() const {
  TestBed bed;
  bed.protocol = without_paths(options_to_spec("continual", options_), Options::kPaths);
  bed.dataset = options_.set == CifarSet::kCifar10 ? "CIFAR-10" : "CIFAR-100";
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
