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

/// What the frost corruption lays over an image: textures of which it takes crops of the image's size.
class FrostTextures {
 public:
  /// Five made textures for images of this side, 32 or 224 (tinted noise of several octaves, ice needles and grain). Their levels and
  /// contrast are near those of the published photographs, whose licence nobody states and which
  /// are therefore not part of this project.
  static std::shared_ptr<const FrostTextures> procedural(int side = 32);

  /// Photographs for images of this side: as they are for 224, at a fifth of their size for 32, as
  /// published. Throws ConfigError when there is none or when one is too small (below 225, or 165 pixels on
  /// a side), which leaves no crop to choose.
  static std::shared_ptr<const FrostTextures> from_photographs(
      const std::vector<FrostTexture>& photographs, int side = 32);

  /// Side of the images.
  int side() const { return side_; }
  /// Ready to crop: each higher and wider than an image.
  const std::vector<FrostTexture>& textures() const { return textures_; }

 private:
  FrostTextures(int side, std::vector<FrostTexture> textures)
      : side_(side), textures_(std::move(textures)) {}
  int side_;
  std::vector<FrostTexture> textures_;
};

}  // namespace gala
