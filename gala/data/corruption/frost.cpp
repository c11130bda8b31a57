#include "gala/data/corruption/effect.h"
#include "gala/data/corruption/pixels.h"

namespace gala {
namespace {

/// image * x + ice * crop, the crop from a texture drawn at random.
class Frost final : public CorruptionEffect {
 public:
  Frost(double image, double ice, std::shared_ptr<const FrostTextures> textures)
      : image_(static_cast<float>(image)),
        ice_(static_cast<float>(ice)),
        textures_(std::move(textures)) {}

  void apply(Random& random, const std::uint8_t* input, std::uint8_t* output) const override {
    const auto& textures = textures_->textures();
    const FrostTexture& texture = textures[random.below(textures.size())];
    // The published bounds leave out the last row and column.
    const auto top = random.below(static_cast<std::uint64_t>(texture.height - kSide));
    const auto left = random.below(static_cast<std::uint64_t>(texture.width - kSide));
    for (int y = 0; y < kSide; ++y) {
      const std::uint8_t* ice =
          &texture.pixels[((top + y) * static_cast<std::uint64_t>(texture.width) + left) * 3];
      for (int i = 0; i < 3 * kSide; ++i) {
        const int place = 3 * kSide * y + i;
        output[place] = to_level(image_ * input[place] + ice_ * ice[i]);
      }
    }
  }

 private:
  float image_, ice_;
  std::shared_ptr<const FrostTextures> textures_;
};

}  // namespace

EffectPointer make_frost(int severity, std::shared_ptr<const FrostTextures> textures) {
  constexpr double kImage[] = {1, 1, 0.9, 0.85, 0.75};
  constexpr double kIce[] = {0.2, 0.3, 0.4, 0.4, 0.45};
  return std::make_unique<Frost>(kImage[severity - 1], kIce[severity - 1], std::move(textures));
}

}  // namespace gala
