#include "gala/data/corruption/corruption_list.h"

#include "gala/data/corruption/corruption.h"

namespace gala {

std::vector<MethodInfo> describe_corruptions() {
  constexpr std::array<std::string_view, enum_names(Corruption{}).size()> kSummaries = {
      "normal noise on each value",
      "noise of photons: Poisson, stronger where there is light",
      "single values turn black or white",
      "out of focus: a small disk",
      "pixels take the place of near ones, between two blurs",
      "the camera moves within 45 degrees of the horizontal",
      "the mean of enlargements up to a quarter (ImageNet: .3)",
      "falling flakes over a whitened image",
      "ice in front of the lens",
      "clouds, and less contrast",
      "more value in HSV",
      "less distance from each channel's mean",
      "a small affine map, then a warp",
      "fewer pixels, shown as many",
      "JPEG at qualities from 80 to 40 (ImageNet: 25 to 7)",
      "extra: normal noise in proportion to the value",
      "extra: a Gaussian blur",
      "extra: drops of water (severity 1 to 3) or mud (4 and 5)",
      "extra: less (severity 1 and 2) or more saturation in HSV"};
  const auto names = enum_names(Corruption{});
  std::vector<MethodInfo> infos;
  for (std::size_t i = 0; i < names.size(); ++i) infos.push_back({names[i], kSummaries[i], {}});
  return infos;
}

}  // namespace gala
