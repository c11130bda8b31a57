#include "gala/data/domainbed.h"

#include <algorithm>
#include <numeric>

#include "gala/base/hash.h"
#include "gala/data/array_dataset.h"
#include "gala/data/image_folder.h"
#include "gala/data/numpy_random.h"
#include "gala/data/stream_order.h"

namespace gala {
namespace {

std::size_t find_environment(const std::string& word, const std::vector<std::string>& names,
                             const std::string& path) {
  const auto named = std::find(names.begin(), names.end(), word);
  if (named != names.end()) return static_cast<std::size_t>(named - names.begin());
  std::size_t number = 0;
  if (parse_value(word, number) && number < names.size()) return number;
  fail<ConfigError>("{}: no environment \"{}\" (expected 0 to {} or a name){}", path, word,
                    names.size() - 1, suggestion(word, names));
}

std::vector<std::size_t> choose_environments(const DomainBedOptions& options,
                                             const std::vector<std::string>& names) {
  if (!options.env.empty() && !options.leave_out.empty()) {
    fail<ConfigError>("data set domainbed: env and leave_out cannot both be given");
  }
  const auto find_all = [&](const std::string& words) {
    std::vector<std::size_t> found;
    for (const std::string& word : split_names(words)) {
      found.push_back(find_environment(word, names, options.path));
    }
    return found;
  };
  if (!options.env.empty()) return find_all(options.env);
  std::vector<std::size_t> chosen(names.size());
  std::iota(chosen.begin(), chosen.end(), 0u);
  if (options.leave_out.empty()) return chosen;
  for (const std::size_t left_out : find_all(options.leave_out)) std::erase(chosen, left_out);
  if (chosen.empty()) fail<ConfigError>("{}: every environment is left out", options.path);
  return chosen;
}

void require_same_classes(const Dataset& first, const Dataset& other, const std::string& path,
                          const std::string& first_name, const std::string& other_name) {
  if (first.class_names() == other.class_names()) return;
  fail<ConfigError>("{}: the environments {} and {} have different classes ({} and {})", path,
                    first_name, other_name, fmt::join(first.class_names(), ", "),
                    fmt::join(other.class_names(), ", "));
}

}  // namespace

DomainBedSplit domainbed_split(std::int64_t size, std::int64_t trial, std::int64_t environment,
                               double holdout) {
  const std::string digest = md5_hex(fmt::format("({}, {})", trial, environment));
  // The remainder by 2^31 of a number is its last 31 bits.
  const auto seed =
      static_cast<std::uint32_t>(std::stoul(digest.substr(24), nullptr, 16) & 0x7fffffff);
  std::vector<std::int64_t> keys(static_cast<std::size_t>(size));
  std::iota(keys.begin(), keys.end(), 0);
  NumpyRandomState(seed).shuffle(keys);
  const auto held = static_cast<std::ptrdiff_t>(static_cast<double>(size) * holdout);
  return {{keys.begin() + held, keys.end()}, {keys.begin(), keys.begin() + held}};
}

std::vector<Domain> open_domainbed(const DomainBedOptions& options) {
  require_option("domainbed", "path", options.path);
  if (!(options.holdout >= 0 && options.holdout <= 1)) {
    fail<ConfigError>("data set domainbed: holdout cannot be {} (expected 0 to 1)",
                      options.holdout);
  }
  const std::filesystem::path path = options.path;
  const std::vector<std::string> names = folders_inside(path);
  if (names.empty()) fail<ConfigError>("{}: has no environment folders", options.path);
  const std::vector<std::size_t> chosen = choose_environments(options, names);
  std::vector<Domain> domains;
  std::shared_ptr<const Dataset> first;
  for (std::size_t environment : chosen) {
    auto whole = open_class_folders(path / names[environment]);
    if (!first) first = whole;
    require_same_classes(*first, *whole, options.path, names[chosen[0]], names[environment]);
    if (options.split != DomainBedPart::kAll) {
      DomainBedSplit split = domainbed_split(
          whole->size(), options.trial, static_cast<std::int64_t>(environment), options.holdout);
      whole = std::make_shared<Subset>(
          whole, std::move(options.split == DomainBedPart::kIn ? split.in : split.out));
    }
    domains.push_back({names[environment], std::move(whole)});
  }
  return domains;
}

}  // namespace gala
