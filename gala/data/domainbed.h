#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gala/data/dataset.h"

namespace gala {

enum class DomainBedPart { kIn, kOut, kAll };
constexpr std::array<std::string_view, 3> enum_names(DomainBedPart) {
  return {"in", "out", "all"};
}

struct DomainBedSplit {
  std::vector<std::int64_t> in;   ///< what is trained on, and what is adapted to
  std::vector<std::int64_t> out;  ///< the held-out part
};

/// DomainBed's split of an environment of `size` pictures, in its order: the index list shuffled by
/// NumPy's RandomState(seed), `out` its first int(holdout * size), `in` the rest; seed is the md5 of
/// the text "(trial, environment)" modulo 2^31.
DomainBedSplit domainbed_split(std::int64_t size, std::int64_t trial, std::int64_t environment,
                               double holdout = 0.2);

struct DomainBedOptions {
  std::string path;
  std::string env;
  std::string leave_out;
  DomainBedPart split = DomainBedPart::kIn;
  std::int64_t trial = 0;
  double holdout = 0.2;
  static constexpr std::array<std::string_view, 1> kPaths = {"path"};
  template <class Visitor>
  static void visit(Visitor&& option) {
    option("path", &DomainBedOptions::path, "folder of one set, with one folder an environment");
    option("env", &DomainBedOptions::env,
           "environments by name or number (0 is the first in byte order), with commas; none: all");
    option("leave_out", &DomainBedOptions::leave_out, "all environments but these");
    option("split", &DomainBedOptions::split, "in (80 %), out (20 %), or all in file order");
    option("trial", &DomainBedOptions::trial, "trial seed of the split");
    option("holdout", &DomainBedOptions::holdout, "fraction held out");
  }
};

/// Environments are the folders in byte order, classes and files too; each environment is a domain.
std::vector<Domain> open_domainbed(const DomainBedOptions& options);

}  // namespace gala
