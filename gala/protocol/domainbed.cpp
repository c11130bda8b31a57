#include "gala/protocol/domainbed.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "gala/data/array_dataset.h"
#include "gala/data/data_paths.h"
#include "gala/data/image_folder.h"

namespace gala {
namespace {

/// Letters and digits in lower case.
std::string bare(std::string_view text) {
  std::string kept;
  for (const char c : text) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter)) kept += static_cast<char>(std::tolower(letter));
  }
  return kept;
}

}  // namespace

std::string domainbed_name(const std::string& path) {
  std::filesystem::path folder = std::filesystem::path(path).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  const std::string name = folder.filename().string();
  for (const char* known : {"PACS", "VLCS", "TerraIncognita", "OfficeHome"}) {
    if (bare(name) == bare(known)) return known;
  }
  return name;
}

RunDefaults DomainBedProtocol::defaults() const {
  return {.stream = "single:order=shuffled",
          .batch_size = 32,
          .method = {.optimizer = "adam:rate=5e-05", .norm = "source"}};
}

TestBed DomainBedProtocol::open() const {
  require_option("domainbed", "path", options_.path);
  const auto part = [&](const std::string& environments, const char* split) {
    DataSource source = open_data({"domainbed",
                                   {{"path", options_.path},
                                    {"env", environments},
                                    {"split", split},
                                    {"trial", format_value(options_.trial)},
                                    {"holdout", format_value(options_.holdout)}}});
    limit_images(source, options_.images);
    return source;
  };
  TestBed bed;
  bed.target = part(options_.env, "in");
  if (bed.target.domains.size() != 1) {
    fail<ConfigError>("protocol domainbed: env must name one environment, not \"{}\"",
                      options_.env);
  }
  bed.dataset = domainbed_name(options_.path);
  bed.environment = bed.target.domains.front().name;
  bed.trial = options_.trial;
  bed.augmented = options_.augmented;
  bed.validates = options_.validation;
  if (options_.holdout > 0) {
    bed.held_out = part(bed.environment, "out");
    std::vector<std::string> others = folders_inside(options_.path);
    std::erase(others, bed.environment);
    if (others.empty()) {
      fail<ConfigError>("{}: has no environment but the target {}", options_.path, bed.environment);
    }
    bed.source = part(fmt::format("{}", fmt::join(others, ",")), "out");
    if (bed.source->class_names() != bed.target.class_names()) {
      fail<ConfigError>("{}: the classes of {} ({}) are not those of the other environments ({})",
                        options_.path, bed.environment, fmt::join(bed.target.class_names(), ", "),
                        fmt::join(bed.source->class_names(), ", "));
    }
  }
  // By its name the target is the same however it was asked for.
  bed.protocol = without_paths(options_to_spec("domainbed", options_), Options::kPaths);
  bed.protocol.set("env", bed.environment);
  bed.data = without_paths(bed.target.spec, data_paths(bed.target.spec.name));
  bed.data.set("env", bed.environment);
  return bed;
}

}  // namespace gala
