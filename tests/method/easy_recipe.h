#pragma once
#include "gala/adapt/source_images.h"
#include "gala/method/method_parts.h"
#include "gala/method/recipe.h"
#include "tests/adapt/toy.h"

namespace gala {

/// The options of a recipe, with its limits widened so that a toy's unsure answers count and that what
/// happens now and then happens within a few batches.
inline MethodOptions easy_recipe(std::string_view name) {
  MethodOptions options = recipe(name);
  options.seed = 3;
  if (options.samples == "eta") options.samples = "eta:margin=2,redundancy=2";
  if (options.samples == "certain") options.samples = "certain:margin=2";
  if (options.samples == "deyo") options.samples = "deyo:margin=2,drop=-1";
  if (options.reset == "every:steps=1000") options.reset = "every:steps=4";
  if (options.store == "balanced") options.store = "balanced:size=12,every=10";
  if (options.teacher == "mean:views=32") options.teacher = "mean:views=3,below=0.99";
  return options;
}

/// Whether a part of the method learns from images of the source; others are refused when there are some.
inline bool learns_from_source(const MethodOptions& options) {
  MethodParts parts;
  make_parts(options, parts);
  return parts.wants_source_images();
}

/// Three batches of what the toy's source saw, as a penalty may want them.
inline SourceImages toy_source(std::int64_t images = 8, std::int64_t side = 8) {
  return [=, number = std::int64_t{100}]() mutable {
    return number < 103 ? toy_images(number++, images, side).clamp(0, 1) : at::Tensor{};
  };
}
/// The same where the method learns from them, else nothing.
inline SourceImages toy_source(const MethodOptions& options) {
  return learns_from_source(options) ? toy_source() : SourceImages{};
}

}  // namespace gala
