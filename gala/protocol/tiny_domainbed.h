#pragma once
#include <array>
#include <string>
#include <string_view>

#include "gala/protocol/protocol.h"

namespace gala {

/// The six shifts of Tiny-DomainBed, by the names the paper's text gives (its numbers disagree).
enum class TinyShift { kTerraL100, kTerraL38, kTerraL43, kPacsCartoon, kPacsSketch, kVlcsSun09 };
constexpr std::array<std::string_view, 6> enum_names(TinyShift) {
  return {"terra_l100", "terra_l38", "terra_l43", "pacs_cartoon", "pacs_sketch", "vlcs_sun09"};
}

/// Tiny-DomainBed: six environments of three DomainBed sets, adapted to as DomainBed is, with blocks
/// for layers. Its runs are DomainBed runs and are shared with them.
class TinyDomainBedProtocol : public Protocol {
 public:
  struct Options {
    std::string root;
    TinyShift shift = TinyShift::kTerraL100;
    std::int64_t trial = 0;
    double holdout = 0.2;
    bool augmented = false;
    bool validation = true;
    std::int64_t images = 0;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("root", &Options::root, "folder with the sets PACS, VLCS and TerraIncognita");
      option("shift", &Options::shift, "which of the six");
      option("trial", &Options::trial, "trial seed of the splits");
      option("holdout", &Options::holdout, "fraction held out");
      option("augmented", &Options::augmented, "score forgetting on augmented images");
      option("validation", &Options::validation, "adapt to the source's hold-outs too");
      option("images", &Options::images, "at most so many of each split; 0: all");
    }
  };
  explicit TinyDomainBedProtocol(const Options& options) : options_(options) {}

  RunDefaults defaults() const override;
  TestBed open() const override;

 private:
  Options options_;
};

}  // namespace gala
