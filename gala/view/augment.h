#pragma once
#include <array>
#include <string_view>

#include "gala/view/augment_draw.h"
#include "gala/view/drawn.h"
#include "gala/view/view.h"

namespace gala {

/// How a picture goes on outside its frame.
enum class PadMode { kEdge, kReflect };
constexpr std::array<std::string_view, 2> enum_names(PadMode) {
  return {"edge", "reflect"};
}

struct AugmentOptions {
  PadMode padding = PadMode::kEdge;
  bool blur = true;
  double noise = 0.005;
  bool soft = false;

  template <class Visitor>
  static void visit(Visitor&& option) {
    option("padding", &AugmentOptions::padding, "how a picture goes on outside its frame");
    option("blur", &AugmentOptions::blur, "a Gaussian blur of 5 x 5 pixels");
    option("noise", &AugmentOptions::noise, "deviation of the noise on pixels of 0 to 1; 0: none");
    option("soft", &AugmentOptions::soft, "the published softer ranges, about half as wide");
  }
};

/// The test-time augmentation of KATANA (Kamenetsky et al. 2021) as CoTTA (Wang et al. 2022) uses it and
/// its published code has it; every number is drawn once for the whole batch. On pixels of 0 to 1:
///
///   colour   brightness 0.6 .. 1.4, contrast 0.7 .. 1.3, saturation 0.5 .. 1.5, hue -0.06 .. 0.06 of a
///            turn, gamma 0.7 .. 1.3, in random order; clipped after each
///   place    padded by half its size; turned by -15 .. 15 degrees, scaled by 0.9 .. 1.1 and shifted by
///            up to 1/16 of the padded size, in whole pixels, bilinear; cropped to the middle; mirrored
///            with probability 1/2
///   rest     before the crop, a Gaussian blur of 5 x 5 with sigma 0.001 .. 0.5; after the flip,
///            Gaussian noise; clipped
///
/// This is CoTTA's and PALM's; ROID's and CMF's is `augment:padding=reflect,blur=no,noise=0`. `soft` is
/// the published code's `soft`. For equal numbers it is what torchvision's functions on tensors give.
///
/// Deviations: a picture that is no square is padded by half of its own height and width, where the
/// published code takes the height for both. Noise is drawn from a counter, not from a generator's state.
/// On a device that has no kernels of ours the images go to the host and back, and no graph can hold
/// that.
class AugmentView : public View {
 public:
  using Options = AugmentOptions;
  explicit AugmentView(const Options& options);

  void attach(at::Device device, const Preprocessing& preprocessing) override;
  void draw(std::uint64_t seed, std::int64_t number, int count) override;
  at::Tensor look(const at::Tensor& images, int which) override;

 private:
  Options options_;
  Preprocessing preprocessing_;
  Drawn<AugmentNumbers> drawn_;
};

/// What the view shows for these numbers, made by the host.
at::Tensor augmented(const at::Tensor& images, const AugmentDraw& draw,
                     const AugmentOptions& options, const Preprocessing& preprocessing);

}  // namespace gala
