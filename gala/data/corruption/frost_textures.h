#pragma once
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace gala {

/// One texture: rows of interleaved RGB bytes.
struct FrostTexture {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<std::uint8_t> pixels;
};

/// What the frost corruption lays over an image: textures of which it takes 32x32 crops.
class FrostTextures {
 public:
  /// Five made textures (tinted noise of several octaves, ice needles and grain). Their levels and
  /// contrast are near those of the published photographs, whose licence nobody states and which
  /// are therefore not part of this project.
  static std::shared_ptr<const FrostTextures> procedural();

  /// Photographs, taken at a fifth of their size as published. Throws ConfigError when there is
  /// none or when one is smaller than 165 pixels on a side, which leaves no crop to choose.
  static std::shared_ptr<const FrostTextures> from_photographs(
      const std::vector<FrostTexture>& photographs);

  /// Ready to crop: each at least 33 pixels high and wide.
  const std::vector<FrostTexture>& textures() const { return textures_; }

 private:
  explicit FrostTextures(std::vector<FrostTexture> textures) : textures_(std::move(textures)) {}
  std::vector<FrostTexture> textures_;
};

}  // namespace gala
