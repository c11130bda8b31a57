#pragma once
// A DomainBed set in miniature: environments and classes as folders, small PNG pictures whose pattern
// tells the class (lines across, lines down, none), with a tint that tells the environment.
#include <png.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "gala/base/random.h"
#include "gala/data/domainbed.h"
#include "gala/train/plan.h"

namespace gala::test {

inline const std::vector<std::string> kEnvironments = {"art", "cartoon", "photo", "sketch"};
inline const std::vector<std::string> kClasses = {"dog", "horse", "house"};

inline void write_png(const std::filesystem::path& path, const std::vector<std::uint8_t>& pixels,
                      unsigned side) {
  png_image image;
  std::memset(&image, 0, sizeof(image));
  image.version = PNG_IMAGE_VERSION;
  image.width = image.height = side;
  image.format = PNG_FORMAT_RGB;
  png_image_write_to_file(&image, path.c_str(), 0, pixels.data(), 0, nullptr);
}

/// `per_class` pictures of 20 x 20 in every class of every environment.
inline void write_domainbed_tree(const std::filesystem::path& root, int per_class) {
  constexpr unsigned kSide = 20;
  for (std::size_t e = 0; e < kEnvironments.size(); ++e) {
    for (std::size_t c = 0; c < kClasses.size(); ++c) {
      const auto folder = root / kEnvironments[e] / kClasses[c];
      std::filesystem::create_directories(folder);
      for (int i = 0; i < per_class; ++i) {
        Random random(e, kClasses[c], {static_cast<std::uint64_t>(i)});
        std::vector<std::uint8_t> pixels(kSide * kSide * 3);
        for (std::size_t p = 0; p < pixels.size(); ++p) {
          const std::size_t across = p / (kSide * 3), down = p / 3 % kSide;
          const bool bright = c < 2 && (c == 0 ? across : down) % 8 < 4;
          const std::uint64_t base = (bright ? 170 : 60) + (p % 3 == e % 3 ? 20 : 0);
          pixels[p] = static_cast<std::uint8_t>(base + random.below(50));
        }
        write_png(folder / fmt::format("{:03}.png", i), pixels, kSide);
      }
    }
  }
}

/// DomainBed's recipe, made small: all environments but `left_out`, best checkpoint kept.
inline std::string domainbed_plan(const std::filesystem::path& root, int steps) {
  return fmt::format(
      "[parameters]\nenv = 1\ntrial = 0\n"
      "[model]\nnetwork = \"wide_resnet:depth=10,width=1\"\n"
      "[data]\ntrain = 'domainbed:path=\"{0}\",leave_out={{env}},split=in,trial={{trial}}'\n"
      "evaluation = 'domainbed:path=\"{0}\",leave_out={{env}},split=out,trial={{trial}}'\n"
      "augmentation = \"domainbed\"\nsampling = \"per_domain\"\n"
      "[train]\nsteps = {1}\nbatch_size = 4\noptimizer = \"adam:rate=0.003\"\n"
      "schedule = \"constant\"\nseed = \"{{trial}}\"\nevaluate_every = 3\nkeep = \"best\"\n"
      "checkpoint_every = 1\n"
      "[output]\nweights = \"{0}_env{{env}}_trial{{trial}}.safetensors\"\n",
      root.string(), steps);
}

}  // namespace gala::test
