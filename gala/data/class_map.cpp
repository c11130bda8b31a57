#include "gala/data/class_map.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "gala/base/input_file.h"
#include "gala/base/json.h"

namespace gala {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostClasses = 1'000'000;

/// Gathers the entries of a file.
class MapBuilder {
 public:
  explicit MapBuilder(std::string path) : path_(std::move(path)) {}

  [[noreturn]] void refuse(const std::string& problem) const { throw FormatError(path_, problem); }

  /// The first name of a number is the one it is called by.
  void add(const std::string& name, std::int64_t number) {
    if (name.empty()) refuse(fmt::format("class {} has an empty name", number));
    if (number < 0 || number >= kMostClasses) {
      refuse(fmt::format("class \"{}\" cannot have the number {} (expected 0 to {})", name, number,
                         kMostClasses - 1));
    }
    const auto [place, is_new] = map_.numbers.emplace(name, number);
    // Of ImageNet's everyday names two stand for two classes: "crane" and "maillot".
    if (!is_new && place->second != number) twice_.insert(name);
    first_names_.emplace(number, name);
  }

  ClassMap finish() {
    if (map_.numbers.empty()) refuse("names no classes");
    for (const std::string& name : twice_) map_.numbers.erase(name);
    map_.classes = first_names_.rbegin()->first + 1;
    if (static_cast<std::int64_t>(first_names_.size()) == map_.classes) {
      for (const auto& [number, name] : first_names_) map_.names.push_back(name);
    }
    return std::move(map_);
  }

 private:
  std::string path_;
  ClassMap map_;
  std::set<std::string> twice_;
  std::map<std::int64_t, std::string> first_names_;
};

void add_json(const json& content, MapBuilder& builder) {
  if (content.is_array()) {
    for (std::size_t i = 0; i < content.size(); ++i) {
      if (!content[i].is_string()) builder.refuse(fmt::format("class {} is not a name", i));
      builder.add(content[i].get<std::string>(), static_cast<std::int64_t>(i));
    }
    return;
  }
  for (const auto& [key, value] : content.items()) {
    std::int64_t number = 0;
    if (value.is_number_integer()) {
      builder.add(key, value.get<std::int64_t>());
    } else if (parse_value(key, number) && value.is_string()) {
      builder.add(value.get<std::string>(), number);
    } else if (parse_value(key, number) && value.is_array()) {
      for (const json& name : value) {
        if (!name.is_string())
          builder.refuse(fmt::format("class {} has a name that is no text", key));
        builder.add(name.get<std::string>(), number);
      }
    } else {
      builder.refuse(
          fmt::format("\"{}\" is neither the name of a class with its number nor a number "
                      "with its name",
                      key));
    }
  }
}

void add_lines(std::string_view text, MapBuilder& builder) {
  std::int64_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
    if (line.empty() && text.empty()) return;
    builder.add(std::string(line), number++);
  }
}

/// Another set with other numbers for its labels.
class Renumbered : public Dataset {
 public:
  Renumbered(std::shared_ptr<const Dataset> whole, std::vector<std::int64_t> numbers,
             std::span<const std::string> names)
      : whole_(std::move(whole)), numbers_(std::move(numbers)) {
    set_classes(static_cast<std::int64_t>(names.size()), {names.begin(), names.end()});
  }
  std::int64_t size() const override { return whole_->size(); }
  std::int64_t label(std::int64_t index) const override {
    return numbers_[static_cast<std::size_t>(whole_->label(index))];
  }
  void read(std::int64_t index, Image& into) const override { whole_->read(index, into); }
  std::string item_name(std::int64_t index) const override { return whole_->item_name(index); }
  bool in_files() const override { return whole_->in_files(); }
  std::array<std::int64_t, 2> plane_size() const override { return whole_->plane_size(); }
  void hash_item(std::int64_t index, Sha256& hash) const override {
    whole_->hash_item(index, hash);
  }

 private:
  std::shared_ptr<const Dataset> whole_;
  std::vector<std::int64_t> numbers_;
};

}  // namespace

std::string shortened(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 3;
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kMost));
  return fmt::format("{}{}", fmt::join(names.begin(), end, ", "),
                     names.size() > kMost ? fmt::format(" and {} more", names.size() - kMost) : "");
}

std::vector<std::int64_t> ClassMap::numbers_of(const std::vector<std::string>& wanted,
                                               const std::string& where,
                                               const std::string& origin) const {
  std::vector<std::int64_t> found;
  std::vector<std::string> unknown;
  std::map<std::int64_t, std::string> taken;
  for (const std::string& name : wanted) {
    const auto place = numbers.find(name);
    if (place == numbers.end()) {
      unknown.push_back(name);
      continue;
    }
    const auto [other, is_new] = taken.emplace(place->second, name);
    if (!is_new) {
      fail<ConfigError>("{}: the folders {} and {} are both class {} of {}", where, other->second,
                        name, place->second, origin);
    }
    found.push_back(place->second);
  }
  if (unknown.empty()) return found;
  std::vector<std::string> known;
  for (const auto& [name, number] : numbers) known.push_back(name);
  const std::string near = nearest(unknown[0], known);
  fail<ConfigError>("{}: {} of {} class folders are not among the {} classes of {}: {}{}", where,
                    unknown.size(), wanted.size(), classes, origin, shortened(unknown),
                    near.empty() ? "" : fmt::format(" (is \"{}\" meant?)", near));
}

ClassMap read_class_map(const std::filesystem::path& path) {
  const auto content = FileContent::read(path);
  const std::string_view text(reinterpret_cast<const char*>(content->bytes().data()),
                              content->bytes().size());
  MapBuilder builder(path.string());
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && (text[first] == '{' || text[first] == '[')) {
    const json parsed = try_parse_json(text);
    if (parsed.is_discarded()) builder.refuse("is not JSON, though it begins so");
    add_json(parsed, builder);
  } else {
    add_lines(text, builder);
  }
  return builder.finish();
}

void number_classes(DataSource& source, std::span<const std::string> known) {
  if (source.classes() == 0) return;
  if (known.empty()) {
    fail<ConfigError>(
        "{}: labels=names needs weights that name their classes, and there are none; classes=FILE "
        "numbers the folders without them",
        source.spec.to_string());
  }
  MapBuilder builder("the weights");
  for (std::size_t c = 0; c < known.size(); ++c) {
    if (!known[c].empty()) builder.add(known[c], static_cast<std::int64_t>(c));
  }
  const ClassMap map = builder.finish();
  for (Domain& domain : source.domains) {
    domain.data = std::make_shared<Renumbered>(
        domain.data,
        map.numbers_of(domain.data->class_names(), source.spec.to_string(), "the weights"), known);
  }
}

}  // namespace gala
