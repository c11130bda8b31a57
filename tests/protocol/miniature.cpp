#include "tests/protocol/miniature.h"

#include <fmt/format.h>
#include <png.h>

#include "gala/base/error.h"
#include "gala/base/random.h"

namespace gala::test {

void write_miniature(const std::filesystem::path& folder,
                     const std::vector<std::string>& environments, int each) {
  constexpr std::uint32_t kSide = 16;
  for (std::size_t e = 0; e < environments.size(); ++e) {
    for (const std::size_t label : {0u, 1u, 2u}) {
      const auto place = folder / environments[e] / fmt::format("class{}", label);
      std::filesystem::create_directories(place);
      for (int i = 0; i < each; ++i) {
        Random random(7, "miniature", {e, label, static_cast<std::uint64_t>(i)});
        std::vector<std::uint8_t> pixels(kSide * kSide * 3);
        for (std::size_t p = 0; p < pixels.size(); ++p) {
          // A tint for the class, a brightness for the environment, and noise.
          const std::size_t tint = p % 3 == label ? 120 : 30;
          pixels[p] = static_cast<std::uint8_t>(tint + 20 * e + random.below(60));
        }
        png_image image{};
        image.version = PNG_IMAGE_VERSION;
        image.width = image.height = kSide;
        image.format = PNG_FORMAT_RGB;
        const auto file = place / fmt::format("{}.png", i);
        if (!png_image_write_to_file(&image, file.c_str(), 0, pixels.data(), 0, nullptr)) {
          fail("{} cannot be written", file.string());
        }
      }
    }
  }
}

}  // namespace gala::test
