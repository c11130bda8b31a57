#include "gala/protocol/tiny_domainbed.h"

#include <algorithm>
#include <filesystem>

#include "gala/data/array_dataset.h"
#include "gala/data/image_folder.h"

namespace gala {
namespace {

struct Place {
  std::string_view set;   ///< as domainbed_name says
  std::string_view mark;  ///< how the environment's folder ends
};

Place place_of(TinyShift shift) {
  switch (shift) {
    case TinyShift::kTerraL100:
      return {"TerraIncognita", "100"};
    case TinyShift::kTerraL38:
      return {"TerraIncognita", "38"};
    case TinyShift::kTerraL43:
      return {"TerraIncognita", "43"};
    case TinyShift::kPacsCartoon:
      return {"PACS", "cartoon"};
    case TinyShift::kPacsSketch:
      return {"PACS", "sketch"};
    case TinyShift::kVlcsSun09:
      return {"VLCS", "SUN09"};
  }
  fail("shift {} does not exist", static_cast<int>(shift));
}

/// The one folder that fits; throws ConfigError with those that are there.
template <class Fits>
std::string find_folder(const std::string& path, std::string_view wanted, Fits&& fits) {
  const std::vector<std::string> folders = folders_inside(path);
  const auto found = std::find_if(folders.begin(), folders.end(), fits);
  if (found == folders.end()) {
    fail<ConfigError>("{}: has no folder for {} (there: {})", path, wanted,
                      fmt::join(folders, ", "));
  }
  return *found;
}

}  // namespace

RunDefaults TinyDomainBedProtocol::defaults() const {
  RunDefaults defaults = DomainBedProtocol({}).defaults();
  defaults.method.partition = Granularity::kBlock;
  return defaults;
}

TestBed TinyDomainBedProtocol::open() const {
  require_option("tiny_domainbed", "root", options_.root);
  const Place place = place_of(options_.shift);
  const std::string set = find_folder(options_.root, place.set, [&](const std::string& folder) {
    return domainbed_name(folder) == place.set;
  });
  const std::string path = (std::filesystem::path(options_.root) / set).string();
  const std::string environment =
      find_folder(path, fmt::format("the environment {}", place.mark),
                  [&](const std::string& folder) { return folder.ends_with(place.mark); });
  DomainBedProtocol::Options options;
  static_cast<DomainBedScoring&>(options) = options_;
  options.path = path;
  options.env = environment;
  return DomainBedProtocol(options).open();
}

}  // namespace gala
