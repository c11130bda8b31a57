#pragma once
#include "gala/view/drawn.h"
#include "gala/view/view.h"

namespace gala {

/// DeYO's destruction of shape (Lee et al. 2024): a picture is cut into grid x grid patches, which are
/// shuffled, in an order of its own for every image. Sides that are no multiple of `grid` are resized to
/// the next lower one and back, antialiased and bilinear, as torchvision's Resize does. Deviations:
/// pictures need not be squares; the orders come from a counter, not from sorted random numbers.
class PatchesView : public View {
 public:
  struct Options {
    std::int64_t grid = 4;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("grid", &Options::grid, "patches along each side");
    }
  };

  explicit PatchesView(const Options& options);
  void attach(at::Device device, const Preprocessing& preprocessing) override;
  void draw(std::uint64_t seed, std::int64_t number, int count) override;
  at::Tensor look(const at::Tensor& images, int which) override;

 private:
  at::Tensor shuffled(const at::Tensor& images, int which) const;
  Options options_;
  Drawn<std::uint64_t> seeds_;
};

}  // namespace gala
