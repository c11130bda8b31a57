#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gala {

/// A number printed in the paper (published.csv says where).
struct PublishedNumber {
  std::string table, backbone, loss, group, row, column;
  double value = 0;
  std::optional<double> deviation;
};

/// The file published.csv as it was when the library was built.
std::string_view published_text();

/// All of them, in the order of the file.
const std::vector<PublishedNumber>& published_numbers();

/// The one with these words, which are compared by `plain_name`; nothing when the paper has none.
std::optional<PublishedNumber> find_published(std::string_view table, std::string_view backbone,
                                              std::string_view loss, std::string_view group,
                                              std::string_view row, std::string_view column);

/// Small letters and digits alone, so that "All layers", "all_layers" and "All Layers" are one name;
/// "∞", "never" and "inf" become "inf". A name without any stays as it is.
std::string plain_name(std::string_view name);

/// How tables name a loss: "PL", "SHOT"; others as they are.
std::string loss_name(std::string_view loss);

}  // namespace gala
