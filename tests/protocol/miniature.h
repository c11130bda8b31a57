#pragma once
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace gala::test {

/// The environments of the four DomainBed sets, as their folders are called.
inline const std::vector<std::pair<std::string, std::vector<std::string>>>& domainbed_sets() {
  static const std::vector<std::pair<std::string, std::vector<std::string>>> sets = {
      {"PACS", {"art_painting", "cartoon", "photo", "sketch"}},
      {"VLCS", {"Caltech101", "LabelMe", "SUN09", "VOC2007"}},
      {"TerraIncognita", {"location_100", "location_38", "location_43", "location_46"}},
      {"OfficeHome", {"Art", "Clipart", "Product", "Real World"}}};
  return sets;
}

/// Writes a tree of small PNG files: `each` pictures for each of three classes in every environment.
void write_miniature(const std::filesystem::path& folder,
                     const std::vector<std::string>& environments, int each = 5);

}  // namespace gala::test
