#include "gala/base/error.h"
#include "gala/data/corruption/effect.h"
#include "gala/data/corruption/pixels.h"

namespace gala {
namespace {

/// image * x + ice * crop, the crop from a texture drawn at random.
class Frost final : public CorruptionEffect {
 public:
  Frost(int side, double image, double ice, std::shared_ptr<const FrostTextures> textures)
      : side_(side),
        image_(static_cast<float>(image)),
        ice_(static_cast<float>(ice)),
        textures_(std::move(textures)) {}

  void apply(Random& random, const std::uint8_t* input, std::uint8_t* output) const override {
    const auto& textures = textures_->textures();
    const FrostTexture& texture = textures[random.below(textures.size())];
    // The published bounds leave out the last row and column.
    const auto top = random.below(static_cast<std::uint64_t>(texture.height - side_));
    const auto left = random.below(static_cast<std::uint64_t>(texture.width - side_));
    for (int y = 0; y < side_; ++y) {
      const std::uint8_t* ice =
          &texture.pixels[((top + y) * static_cast<std::uint64_t>(texture.width) + left) * 3];
      for (int i = 0; i < 3 * side_; ++i) {
        const int place = 3 * side_ * y + i;
        output[place] = to_level(image_ * input[place] + ice_ * ice[i]);
      }
    }
  }

 private:
  int side_;
  float image_, ice_;
  std::shared_ptr<const FrostTextures> textures_;
};

}  // namespace

EffectPointer make_frost(CorruptionSet set, int severity,
                         std::shared_ptr<const FrostTextures> textures) {
  constexpr double kImage[][kSeverities] = {{1, 1, 0.9, 0.85, 0.75}, {1, 0.8, 0.7, 0.65, 0.6}};
  constexpr double kIce[][kSeverities] = {{0.2, 0.3, 0.4, 0.4, 0.45}, {0.4, 0.6, 0.7, 0.7, 0.75}};
  if (textures->side() != side_of(set)) {
    fail<ConfigError>(
        "frost: textures for crops of {0}x{0} pixels cannot cover pictures of {1}x{1}",
        textures->side(), side_of(set));
  }
  return std::make_unique<Frost>(side_of(set), constant_of(kImage, set, severity),
                                 constant_of(kIce, set, severity), std::move(textures));
}

}  // namespace gala
