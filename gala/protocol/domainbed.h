#pragma once
#include <string>

#include "gala/protocol/protocol.h"

namespace gala {

/// How one set of DomainBed is split and scored, whichever way its target is named.
struct DomainBedScoring {
  std::int64_t trial = 0;
  double holdout = 0.2;
  bool augmented = false;
  bool validation = true;
  std::int64_t images = 0;

  /// `visit` of an options struct that derives from this one, for the options that are here.
  template <class Options, class Visitor>
  static void visit(Visitor&& option) {
    const auto add = [&]<class T>(const char* name, T DomainBedScoring::*member, const char* help) {
      option(name, static_cast<T Options::*>(member), help);
    };
    add("trial", &DomainBedScoring::trial, "trial seed of the splits");
    add("holdout", &DomainBedScoring::holdout, "fraction held out");
    add("augmented", &DomainBedScoring::augmented,
        "vary the source's hold-outs at random, as in training");
    add("validation", &DomainBedScoring::validation, "adapt to the source's hold-outs too");
    add("images", &DomainBedScoring::images, "at most so many of each split; 0: all");
  }
};

/// DomainBed as T3A adapts to it: the target environment's `in` split in one online pass, shuffled,
/// batches of 32, source statistics. Generalisation is scored on the target's `out` split, forgetting
/// on the `out` splits of the other environments. T3A varies those at random as in training
/// (`augmented=yes`); here they are taken as they are. With `validation` each of them is also adapted
/// to, from the source model anew: T3A's training-domain validation.
class DomainBedProtocol : public Protocol {
 public:
  struct Options : DomainBedScoring {
    std::string path;
    std::string env = "0";
    static constexpr std::array<std::string_view, 1> kPaths = {"path"};
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("path", &Options::path, "folder of one set, with one folder an environment");
      option("env", &Options::env, "the target, by name or number");
      DomainBedScoring::visit<Options>(option);
    }
  };
  explicit DomainBedProtocol(const Options& options) : options_(options) {}

  RunDefaults defaults() const override;
  TestBed open() const override;

 private:
  Options options_;
};

/// The usual name of a set that lies in `path`: "TerraIncognita" for .../terra_incognita.
std::string domainbed_name(const std::string& path);

}  // namespace gala
