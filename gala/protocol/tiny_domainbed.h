#pragma once
#include <array>
#include <string>
#include <string_view>

#include "gala/protocol/domainbed.h"

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
  struct Options : DomainBedScoring {
    std::string root;
    TinyShift shift = TinyShift::kTerraL100;
    static constexpr std::array<std::string_view, 1> kPaths = {"root"};
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("root", &Options::root, "folder with the sets PACS, VLCS and TerraIncognita");
      option("shift", &Options::shift, "which of the six");
      DomainBedScoring::visit<Options>(option);
    }
  };
  explicit TinyDomainBedProtocol(const Options& options) : options_(options) {}

  RunDefaults defaults() const override;
  TestBed open() const override;

 private:
  Options options_;
};

}  // namespace gala
