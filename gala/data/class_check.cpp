#include "gala/data/class_check.h"

#include <algorithm>
#include <map>

#include "gala/base/error.h"

namespace gala {
namespace {

/// Empty, as the next one, where there is nothing to say.
std::string class_name_warning(const DataSource& source, std::span<const std::string> known) {
  const std::vector<std::string>& names = source.class_names();
  for (std::size_t c = 0; c < std::min(names.size(), known.size()); ++c) {
    if (names[c] == known[c]) continue;
    return fmt::format(
        "class {} is \"{}\" in the data and \"{}\" in the weights: the accuracy may mean nothing",
        c, names[c], known[c]);
  }
  return "";
}

/// What to do about class folders that are not the classes of the head.
std::string ways_out(const DataSource& source, const Model& model) {
  if (source.spec.name != "folder") return "";
  return fmt::format(
      ". To go on, add to the folder's path: labels=none (answer without labels), labels=names "
      "(find "
      "the folders' names among those of the weights' classes{}) or classes=FILE (a file that "
      "numbers "
      "the names){}",
      model.class_names().empty() ? "; these name none"
                                  : fmt::format(", such as \"{}\"", model.class_names().front()),
      source.notes().empty() ? "" : fmt::format(". {}", fmt::join(source.notes(), "; ")));
}

std::string class_order_warning(const Stream& stream) {
  if (stream.spec.name == "correlated") return "";
  std::map<std::int64_t, double> counts;
  double pictures = 0, neighbours = 0, unlike = 0;
  for (const StreamSegment& segment : stream.segments) {
    std::int64_t before = -1;
    for (std::int64_t i = segment.begin; i < segment.begin + segment.size; ++i) {
      const std::int64_t label = stream.label(i);
      if (label < 0) continue;
      ++counts[label];
      ++pictures;
      if (before >= 0) {
        ++neighbours;
        unlike += label != before;
      }
      before = label;
    }
  }
  double unlike_when_mixed = 1;
  for (const auto& [label, count] : counts) {
    unlike_when_mixed -= count * count / (pictures * pictures);
  }
  constexpr double kRare = 0.25;
  if (counts.size() < 2 || unlike >= kRare * unlike_when_mixed * neighbours) return "";
  return fmt::format(
      "the pictures come class after class, which misleads whatever looks at a batch; if only "
      "their files lie so, the stream {} mixes them",
      stream.spec.name == "single" ? "single:order=shuffled"
                                   : stream.spec.name + ":samples=shuffled");
}

}  // namespace

void check_classes(const DataSource& source, const Model& model) {
  const std::int64_t classes = source.classes();
  if (!source.class_names().empty() && classes != model.classes()) {
    fail<ConfigError>("{} has {} {}, but the head of {} has {}{}", source.spec.name, classes,
                      classes == 1 ? "class" : "classes", model.spec().name, model.classes(),
                      ways_out(source, model));
  }
  if (classes > model.classes()) {
    fail<ConfigError>("{} has labels up to {}, but the head of {} has {} classes (0 to {})",
                      source.spec.name, classes - 1, model.spec().name, model.classes(),
                      model.classes() - 1);
  }
}

std::vector<std::string> class_warnings(const DataSource& source, const Stream& stream,
                                        std::span<const std::string> known) {
  std::vector<std::string> warnings;
  for (std::string warning : {class_name_warning(source, known), class_order_warning(stream)}) {
    if (!warning.empty()) warnings.push_back(std::move(warning));
  }
  return warnings;
}

}  // namespace gala
