#pragma once
// `augment` on host memory, on plain pointers: compiled apart, see CMakeLists.txt.
#include <cstdint>
#include <vector>

#include "gala/view/augment_math.h"

namespace gala {

/// How far around a picture the blur looks.
constexpr std::int32_t kBlurReach = 2;

/// A look at a batch, image by image. Images can be made by many threads; each is made by one, and no
/// number depends on which.
class CpuAugment {
 public:
  CpuAugment(const AugmentTask& task, const AugmentNumbers& drawn);

  /// Works out where the pixels of some rows come from, the same for all images. Of all rows, 0 to
  /// `rows()`, before the first image.
  void place_rows(std::int64_t begin, std::int64_t end);
  std::int64_t rows() const { return rows_; }

  /// What a thread needs beside input and output.
  std::vector<float> make_scratch() const;
  void make_image(std::int64_t image, const float* input, float* output, float* scratch) const;

 private:
  AugmentTask task_;
  AugmentNumbers drawn_;
  std::int32_t reach_;
  std::int64_t rows_, columns_;
  std::vector<Taps>
      taps_;  ///< of every place of the result, and of those around it that blur needs
};

}  // namespace gala
