#include "gala/protocol/continual.h"

#include <filesystem>

#include "gala/data/data_paths.h"

namespace gala {

RunDefaults ContinualProtocol::defaults() const {
  return {.stream = "continual",
          .batch_size = 200,
          .method = {.optimizer = "adam:rate=0.001", .norm = "batch"}};
}

TestBed ContinualProtocol::open() const {
  const std::string set = format_value(options_.set);
  const Spec corrupted{set + "c",
                       {{"path", options_.path},
                        {"corruption", options_.corruption},
                        {"severity", options_.severity},
                        {"generate", format_value(options_.generate)},
                        {"seed", format_value(options_.seed)},
                        {"frost", options_.frost}}};
  if (!options_.generate && !options_.path.empty() && !std::filesystem::exists(options_.path)) {
    fail<ConfigError>(
        "{} is missing; the published arrays go there, or make them: gala corrupt --data "
        "{}:path={} "
        "--corruption {} --severity {} --out {}",
        options_.path, set, options_.clean.empty() ? "CLEAN" : options_.clean, options_.corruption,
        options_.severity, options_.path);
  }
  TestBed bed;
  bed.protocol = without_paths(options_to_spec("continual", options_), Options::kPaths);
  bed.target = open_data(corrupted);
  bed.data = without_paths(bed.target.spec, data_paths(bed.target.spec.name));
  limit_images(bed.target, options_.images);
  const std::string clean =
      options_.clean.empty() && options_.generate ? options_.path : options_.clean;
  if (!clean.empty()) {
    bed.source = open_data({set, {{"path", clean}, {"split", "test"}}});
    bed.source->domains.front().name = "clean";
    limit_images(*bed.source, options_.images);
  }
  bed.dataset = options_.set == CifarSet::kCifar10 ? "CIFAR-10-C" : "CIFAR-100-C";
  return bed;
}

}  // namespace gala
