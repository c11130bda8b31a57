#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "gala/method/store.h"

namespace gala {

/// The memory of RoTTA (Yuan et al. 2023): `size` images, no class with more than its share. Who must go is
/// who scores highest, by 1 / (1 + exp(-age / size)), its age in images, plus its entropy over ln C; a
/// new image that scores no lower than all who could go for it stays out. An image belongs to the class it was answered with.
/// After every `every` images of the stream a step is made on all that is kept, class by class.
///
/// Images without a finite answer stay out. A stream that changes the size of its images begins a new
/// memory.
class BalancedStore : public Store {
 public:
  struct Options {
    std::int64_t size = 64;
    std::int64_t every = 64;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("size", &Options::size, "images kept");
      option("every", &Options::every, "images between two steps; 0: a step after every batch");
    }
  };
  explicit BalancedStore(const Options& options);

  void attach(at::Device device, std::int64_t classes) override;
  Shown show(const at::Tensor& images) override {
    return {.images = images, .adapt = false, .statistics = false};
  }
  void take(const at::Tensor& images, const at::Tensor& logits, const Step& step) override;
  at::Tensor ages() const override;
  bool answers_first() const override { return true; }
  void reset() override;
  void remember(StateArchive& archive) override;

 private:
  struct Item {
    std::int64_t place;  ///< row of images_
    double uncertainty;
    std::int64_t age;
  };

  /// Rows of images by the place that they are to have.
  using Arrivals = std::map<std::int64_t, std::int64_t>;

  double score(double uncertainty, std::int64_t age) const;
  bool make_room(std::size_t label, double score);
  bool remove_worst(const std::vector<std::size_t>& classes, double score);
  std::optional<std::int64_t> add(std::size_t label, double uncertainty);
  void put(const at::Tensor& images, Arrivals& arrivals);
  void make_step(const Step& step);
  std::int64_t count() const;
  void make_places(at::IntArrayRef image_sizes);

  Options options_;
  at::Device device_{at::kCPU};
  std::vector<std::vector<Item>> classes_;  ///< in the order in which they came
  std::vector<std::int64_t> free_;          ///< rows of images_ that hold none
  at::Tensor images_;                       ///< [size, 3, H, W]; undefined before the first image
  at::Tensor ages_;                         ///< [size], of the last step
  std::int64_t in_step_ = 0;                ///< images in the last step
  std::int64_t seen_ = 0;                   ///< images of the stream
};

}  // namespace gala
