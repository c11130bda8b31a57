#include "gala/data/stream_order.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "gala/base/random.h"

namespace gala {
namespace {

std::vector<std::int32_t> in_file_order(const Dataset& data) {
  std::vector<std::int32_t> indices(static_cast<std::size_t>(data.size()));
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

std::vector<std::int32_t> in_order(const Dataset& data, SampleOrder order, std::uint64_t seed,
                                   std::size_t segment) {
  std::vector<std::int32_t> indices = in_file_order(data);
  if (order == SampleOrder::kShuffled) {
    Random random(seed, "stream", {segment});
    random.shuffle(indices);
  }
  return indices;
}

void append_segment(Stream& stream, std::size_t domain, const std::vector<std::int32_t>& indices,
                    const std::string& visit = "") {
  stream.segments.push_back({stream.domains[domain].name + visit, stream.size(),
                             static_cast<std::int64_t>(indices.size())});
  for (std::int32_t index : indices) {
    stream.items.push_back({static_cast<std::int32_t>(domain), index});
  }
}

template <class Options>
void set_flags(const Options& options, Stream& stream) {
  stream.cut_at_borders = options.borders == Borders::kCut;
  stream.drop_last = options.last == LastBatch::kDrop;
  stream.reset_at_borders = options.reset;
}

/// The named domains (by name, or by family where only one severity of it is there), or all.
std::vector<std::size_t> chosen_domains(const Stream& stream, const std::string& order) {
  std::vector<std::size_t> chosen;
  if (order.empty()) {
    chosen.resize(stream.domains.size());
    std::iota(chosen.begin(), chosen.end(), 0u);
    return chosen;
  }
  std::vector<std::string> known;
  for (const Domain& domain : stream.domains) known.push_back(domain.name);
  for (const std::string& name : split_names(order)) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < stream.domains.size(); ++i) {
      const Domain& domain = stream.domains[i];
      if (domain.name == name || domain.family == name) found.push_back(i);
    }
    if (found.empty()) {
      fail<ConfigError>("stream {}: order names the unknown domain \"{}\"{}", stream.spec.name,
                        name, suggestion(name, known));
    }
    if (found.size() > 1) {
      fail<ConfigError>("stream {}: \"{}\" is there at {} severities; name one of them{}",
                        stream.spec.name, name, found.size(), suggestion(name, known));
    }
    chosen.push_back(found.front());
  }
  return chosen;
}

/// Goes through the chosen domains once a visit. `append` is given a domain and what its segment is called
/// behind the domain's name: nothing, or " (visit 3)".
template <class Options, class Append>
void for_each_visit(const Options& options, const Stream& stream, Append append) {
  constexpr std::int64_t kMost = 1000;
  if (options.visits < 1 || options.visits > kMost) {
    fail<ConfigError>("stream {}: visits cannot be {} (expected 1 to {})", stream.spec.name,
                      options.visits, kMost);
  }
  const std::vector<std::size_t> chosen = chosen_domains(stream, options.order);
  for (std::int64_t visit = 1; visit <= options.visits; ++visit) {
    const std::string behind = options.visits == 1 ? "" : fmt::format(" (visit {})", visit);
    for (const std::size_t domain : chosen) append(domain, behind);
  }
}

/// log of a Gamma(shape, 1) variable (Marsaglia and Tsang; below 1 by Gamma(shape + 1) U^(1/shape),
/// whose logarithm does not underflow).
double log_gamma_draw(double shape, Random& random) {
  if (shape < 1) {
    double u = random.uniform();
    while (u == 0) u = random.uniform();
    return log_gamma_draw(shape + 1, random) + std::log(u) / shape;
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = random.normal();
    const double v = std::pow(1 + c * x, 3);
    const double u = random.uniform();
    if (v > 0 && u > 0 && std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) {
      return std::log(d) + std::log(v);
    }
  }
}

/// A draw from the symmetric Dirichlet distribution.
std::vector<double> dirichlet(double delta, std::size_t size, Random& random) {
  std::vector<double> logs(size);
  for (double& value : logs) value = log_gamma_draw(delta, random);
  const double largest = *std::max_element(logs.begin(), logs.end());
  double total = 0;
  for (double& value : logs) total += value = std::exp(value - largest);
  for (double& value : logs) value /= total;
  return logs;
}

std::vector<std::vector<std::int32_t>> by_class(const Domain& domain) {
  std::vector<std::vector<std::int32_t>> classes(static_cast<std::size_t>(domain.data->classes()));
  for (std::int32_t index : in_file_order(*domain.data)) {
    classes[static_cast<std::size_t>(domain.data->label(index))].push_back(index);
  }
  return classes;
}

/// Each class, shuffled, is cut into slots in proportions that a Dirichlet draw gives; a slot plays
/// its classes one after another in a random order.
std::vector<std::int32_t> spread_over_slots(const Domain& domain, const CorrelatedOptions& options,
                                            Random& random) {
  auto classes = by_class(domain);
  std::vector<std::vector<std::vector<std::int32_t>>> slots(
      static_cast<std::size_t>(options.slots));
  for (auto& members : classes) {
    random.shuffle(members);
    const std::vector<double> parts = dirichlet(options.delta, slots.size(), random);
    double reached = 0;
    std::size_t begin = 0;
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
      reached += parts[slot];
      const std::size_t end =
          slot + 1 == slots.size()
              ? members.size()
              : std::min(members.size(), static_cast<std::size_t>(std::llround(
                                             reached * static_cast<double>(members.size()))));
      if (end > begin)
        slots[slot].emplace_back(members.begin() + static_cast<std::ptrdiff_t>(begin),
                                 members.begin() + static_cast<std::ptrdiff_t>(end));
      begin = std::max(begin, end);
    }
  }
  std::vector<std::int32_t> order;
  for (auto& slot : slots) {
    random.shuffle(slot);
    for (const auto& part : slot) order.insert(order.end(), part.begin(), part.end());
  }
  return order;
}

/// The families in order of appearance, or the named ones.
std::vector<std::string> chosen_families(const Stream& stream, const std::string& order) {
  std::vector<std::string> known;
  for (const Domain& domain : stream.domains) {
    if (!domain.family.empty() &&
        std::find(known.begin(), known.end(), domain.family) == known.end()) {
      known.push_back(domain.family);
    }
  }
  if (known.empty()) {
    fail<ConfigError>(
        "stream gradual: the data has no severities (use corruption=all,severity=all)");
  }
  if (order.empty()) return known;
  std::vector<std::string> chosen = split_names(order);
  for (const std::string& name : chosen) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      fail<ConfigError>("stream gradual: order names the unknown corruption \"{}\"{}", name,
                        suggestion(name, known));
    }
  }
  return chosen;
}

std::size_t find_severity(const Stream& stream, const std::string& family, int severity) {
  for (std::size_t i = 0; i < stream.domains.size(); ++i) {
    const Domain& domain = stream.domains[i];
    if (domain.family == family && domain.severity == severity) return i;
  }
  fail<ConfigError>("stream gradual: severity {} of {} is not in the data (use severity=all)",
                    severity, family);
}

}  // namespace

void lay_out_single(const SingleOptions& options, std::uint64_t seed, Stream& stream) {
  if (stream.domains.size() != 1) {
    std::vector<std::string> names;
    for (const Domain& domain : stream.domains) names.push_back(domain.name);
    fail<ConfigError>(
        "stream single takes one domain, the data has {}: {} (use continual, or choose "
        "one in the data spec)",
        names.size(), fmt::join(names, ", "));
  }
  stream.drop_last = options.last == LastBatch::kDrop;
  append_segment(stream, 0, in_order(*stream.domains[0].data, options.order, seed, 0));
}

void lay_out_continual(const ContinualOptions& options, std::uint64_t seed, Stream& stream) {
  set_flags(options, stream);
  for_each_visit(options, stream, [&](std::size_t domain, const std::string& visit) {
    append_segment(
        stream, domain,
        in_order(*stream.domains[domain].data, options.samples, seed, stream.segments.size()),
        visit);
  });
}

void lay_out_gradual(const GradualOptions& options, std::uint64_t seed, Stream& stream) {
  set_flags(options, stream);
  static constexpr std::array<int, 9> kSwell = {1, 2, 3, 4, 5, 4, 3, 2, 1};
  bool first = options.form == GradualForm::kCotta;
  for (const std::string& family : chosen_families(stream, options.order)) {
    // CoTTA's first corruption begins at its height.
    for (std::size_t i = first ? 4 : 0; i < kSwell.size(); ++i) {
      const std::size_t domain = find_severity(stream, family, kSwell[i]);
      append_segment(
          stream, domain,
          in_order(*stream.domains[domain].data, options.samples, seed, stream.segments.size()));
    }
    first = false;
  }
}

void lay_out_mixed(const MixedOptions& options, std::uint64_t seed, Stream& stream) {
  stream.drop_last = options.last == LastBatch::kDrop;
  for (std::size_t domain = 0; domain < stream.domains.size(); ++domain) {
    append_segment(stream, domain, in_file_order(*stream.domains[domain].data));
  }
  Random random(seed, "mixed");
  random.shuffle(stream.items);
  stream.segments = {{"mixed", 0, stream.size()}};
}

void lay_out_correlated(const CorrelatedOptions& options, std::uint64_t seed, Stream& stream) {
  set_flags(options, stream);
  if (!(options.delta > 0)) {
    fail<ConfigError>("stream correlated: delta cannot be {} (expected more than 0)",
                      options.delta);
  }
  if (options.slots < 1 || options.slots > 1'000'000) {
    fail<ConfigError>("stream correlated: slots cannot be {} (expected 1 to 1000000)",
                      options.slots);
  }
  for_each_visit(options, stream, [&](std::size_t index, const std::string& visit) {
    const Domain& domain = stream.domains[index];
    if (!domain.data->labelled()) {
      fail<ConfigError>("stream correlated: domain {} has no labels to correlate", domain.name);
    }
    Random random(seed, "correlated", {stream.segments.size()});
    std::vector<std::int32_t> order;
    if (options.by == Correlation::kSorted) {
      for (const auto& members : by_class(domain)) {
        order.insert(order.end(), members.begin(), members.end());
      }
    } else {
      order = spread_over_slots(domain, options, random);
    }
    append_segment(stream, index, order, visit);
  });
}

}  // namespace gala
