#pragma once
#include <string>
#include <vector>

#include "gala/protocol/record.h"

namespace gala {

/// A run whose error a picture draws.
struct PictureLine {
  std::string label, colour;
  const Record* run = nullptr;
};

/// A stream in one picture: the error of runs while it passes and, below it at the same width, which
/// layers one of them moved at which step. Either part may be missing.
struct Picture {
  std::string title;
  std::vector<PictureLine> lines = {};  ///< those without scored answers are left out
  std::string mover = {};               ///< whose layers are shown; may be empty
  const Record* choices = nullptr;      ///< that run
};

/// As SVG that needs no other file. Its background is the page's: lines and letters can be read on
/// white and on black. Texts may hold anything: they stay text.
std::string to_svg(const Picture& picture);

}  // namespace gala
