#pragma once
#include <array>
#include <string>
#include <vector>

#include "gala/select/draws.h"
#include "gala/select/gala.h"

namespace gala {

enum class ControlDraw { kEven, kRotation, kFrequencies };
constexpr std::array<std::string_view, 3> enum_names(ControlDraw) {
  return {"even", "rotation", "frequencies"};
}

/// GALA without its criterion, to tell what alignment is worth: windows, opening and skipped steps are GALA's, and
/// where GALA would move one layer, another rule says which.
///
///  - `draw`: every layer alike; one after the other in forward order, over windows; or each as often as GALA
///    would have chosen it so far, plus one.
///  - `repeats=no`: no layer twice in a window, as long as there is another.
///  - `match`: the layer moves not by its whole update but so far that the way travelled is GALA's. Its weight is
///    Σ |u| of the layers that GALA would have chosen over Σ |u| of those that were, both sums fading within
///    a window, and 2^24 at most. Without it, rules that choose larger layers travel farther, and that alone may make the
///    difference.
///
/// What GALA would choose is asked of it at every step, with the displacement that this selector made.
class ControlSelector : public Selector {
 public:
  struct Options {
    ControlDraw draw = ControlDraw::kEven;
    bool repeats = true;
    bool match = true;
    double threshold = GalaSelector::Options{}.threshold;
    std::int64_t window = GalaSelector::Options{}.window;
    double opening_scale = GalaSelector::Options{}.opening_scale;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("draw", &Options::draw, "how the layer is found that moves in place of GALA's");
      option("repeats", &Options::repeats, "whether a layer may move twice in a window");
      option("match", &Options::match, "travel as far as GALA would");
      option("threshold", &Options::threshold, "GALA's: below it no layer moves");
      option("window", &Options::window, "GALA's: steps after which displacement counts anew");
      option("opening_scale", &Options::opening_scale, "GALA's: factor on the opening step");
    }
  };
  ControlSelector(const Options& options, std::uint64_t seed);

  bool reads_values() const override { return false; }
  Window window() const override { return gala_.window(); }
  void name_run(const std::string& run) override { draws_.name_run(run); }
  void attach(const LayerPartition& layers) override;
  std::vector<double> select(const Proposal& proposal) override;
  void reset() override;
  void restart() override;
  void remember(Archive& archive) override;

 private:
  std::size_t draw();
  std::vector<std::size_t> allowed();

  Options options_;
  GalaSelector gala_;
  Draws draws_;
  std::size_t layers_ = 0;
  std::size_t next_ = 0;               ///< of a rotation
  std::vector<std::int64_t> chosen_;   ///< by layer: how often GALA would have
  std::vector<std::int64_t> moved_;    ///< by layer: 1 where it moved in this window
  double wanted_ = 0, travelled_ = 0;  ///< GALA's way and ours, fading
};

}  // namespace gala
