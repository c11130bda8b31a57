#pragma once
#include "gala/view/augmix_draw.h"
#include "gala/view/drawn.h"
#include "gala/view/view.h"

namespace gala {

/// AugMix (Hendrycks et al. 2020) as the published code of MEMO (Zhang et al. 2022) draws its looks. A picture is
/// cropped out of one padded by an eighth of its sides in black, and mirrored with probability 1/2. Of that, x,
/// three chains of one to three changes are mixed,
///
///   m x + (1 - m) (w1 chain1(x) + w2 chain2(x) + w3 chain3(x)),   w ~ Dirichlet(1, 1, 1),   m ~ Beta(1, 1)
///
/// where a change is one of autocontrast, equalize, rotate, solarize, shear and translate along either side, and
/// posterize, with PIL's results on pixels of 8 bits, to which the picture is rounded. At MEMO's severity, 1, a
/// turn is of up to 2 degrees, a shift of up to a thirtieth of a side, and posterize keeps 4 bits; AugMix's own is 3. What
/// comes in from outside is (128, 0, 0), as PIL reads the 128 of the published code, not grey.
///
/// Deviations: every number is drawn once for the whole batch, which is the published one for a batch of one image.
/// The published code for ImageNet crops at random from the picture before it is prepared, which a view does
/// not see; the crop here is that of CIFAR, whose padding is 4 of 32. A picture with a pixel that is not finite is not finite.
/// A batch is looked at by LibTorch's operations of fixed shapes alone, on its device.
class AugmixView : public View {
 public:
  struct Options {
    double severity = 1;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("severity", &Options::severity, "of the changes, 0.1 to 10; AugMix's own is 3");
    }
  };
  explicit AugmixView(const Options& options);
  void attach(at::Device device, const Preprocessing& preprocessing) override;
  void draw(std::uint64_t seed, std::int64_t number, int count) override;
  at::Tensor look(const at::Tensor& images, int which) override;

 private:
  Options options_;
  Preprocessing preprocessing_;
  Drawn<AugmixDraw> drawn_;
};

/// What the view shows for these numbers, kAugmixNumbers doubles on the images' device.
at::Tensor augmixed(const at::Tensor& images, const at::Tensor& numbers,
                    const Preprocessing& preprocessing);

}  // namespace gala
