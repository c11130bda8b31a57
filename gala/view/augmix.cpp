#include "gala/view/augmix.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "gala/view/batch.h"
#include "gala/view/cuda_views.h"
#include "gala/view/ranges.h"

namespace gala {
namespace {

constexpr std::int64_t kLevels = 256;
constexpr std::int64_t kChangeNumbers = sizeof(AugmixChange) / sizeof(double);

/// One number for each of the chains, as something that pictures [chains, ...] are compared with.
at::Tensor wide(const at::Tensor& numbers, std::int64_t dimensions) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(dimensions), 1);
  sizes[0] = numbers.size(0);
  return numbers.view(sizes);
}

/// The changes of all chains at one place in them, each number [chains].
struct Changes {
  at::Tensor cosine, skew_x, skew_y, turn, shift_x, shift_y, stretch, equalize, threshold, coarse;

  explicit Changes(const at::Tensor& numbers) {
    std::int64_t next = 0;
    for (at::Tensor* each : {&cosine, &skew_x, &skew_y, &turn, &shift_x, &shift_y, &stretch,
                             &equalize, &threshold, &coarse}) {
      *each = numbers.select(1, next++).contiguous();
    }
  }
};

/// Where the pixels of a picture are read, [chains, pixels].
struct Places {
  at::Tensor inside;
  at::Tensor corners[2][2];  ///< which pixel, by upper or lower and left or right
  at::Tensor right, lower;   ///< shares of the right ones and of the lower ones
};

/// As PIL's Image.transform(AFFINE, BILINEAR): the centre of a pixel is mapped, and beyond the border a picture's own
/// pixels go on for half a pixel.
Places places_of(const Changes& by, std::int64_t height, std::int64_t width) {
  const auto tall = static_cast<double>(height), broad = static_cast<double>(width);
  const auto options = by.cosine.options();
  const at::Tensor x = (at::arange(width, options) + 0.5).view({1, 1, width});
  const at::Tensor y = (at::arange(height, options) + 0.5).view({1, height, 1});
  const at::Tensor about_x =
      by.turn * (by.cosine * (-broad / 2) + by.skew_x * (-tall / 2) + broad / 2);
  const at::Tensor about_y =
      by.turn * (by.skew_y * (-broad / 2) + by.cosine * (-tall / 2) + tall / 2);
  const at::Tensor shift_x = about_x + (by.shift_x * (broad / 3) / 10).trunc();
  const at::Tensor shift_y = about_y + (by.shift_y * (tall / 3) / 10).trunc();
  const auto mapped = [&](const at::Tensor& of_x, const at::Tensor& of_y, const at::Tensor& shift) {
    return (wide(of_x, 3) * x + wide(of_y, 3) * y + wide(shift, 3)).flatten(1);
  };
  const at::Tensor from_x = mapped(by.cosine, by.skew_x, shift_x);
  const at::Tensor from_y = mapped(by.skew_y, by.cosine, shift_y);
  Places places;
  places.inside = from_x.ge(0)
                      .logical_and(from_x.lt(broad))
                      .logical_and(from_y.ge(0))
                      .logical_and(from_y.lt(tall));
  const at::Tensor left = (from_x - 0.5).floor(), top = (from_y - 0.5).floor();
  places.right = from_x - 0.5 - left;
  places.lower = from_y - 0.5 - top;
  for (int below = 0; below < 2; ++below) {
    const at::Tensor row = (top + below).clamp(0, tall - 1);
    for (int beside = 0; beside < 2; ++beside) {
      const at::Tensor column = (left + beside).clamp(0, broad - 1);
      places.corners[below][beside] = (row * broad + column).to(at::kLong);
    }
  }
  return places;
}

/// Pictures [chains, N, 3, pixels] of whole levels (int64), with what comes in from outside, [3].
at::Tensor warped(const at::Tensor& pictures, const Places& places, const at::Tensor& outside) {
  const auto read = [&](const at::Tensor& corner) {
    const at::Tensor index = corner.unsqueeze(1).unsqueeze(1).expand(pictures.sizes());
    return pictures.gather(3, index).to(at::kDouble);
  };
  const auto spread = [](const at::Tensor& by_pixel) { return by_pixel.unsqueeze(1).unsqueeze(1); };
  const auto across = [&](int below) {
    const at::Tensor left = read(places.corners[below][0]);
    return left + (read(places.corners[below][1]) - left) * spread(places.right);
  };
  const at::Tensor upper = across(0);
  const at::Tensor value = upper + (across(1) - upper) * spread(places.lower);
  return at::where(spread(places.inside), value.to(at::kLong), outside.view({1, 1, 3, 1}));
}

/// How often each level comes, [pictures and channels, levels].
at::Tensor counts_of(const at::Tensor& levels) {
  const std::int64_t rows = levels.size(0);
  const at::Tensor first = at::arange(rows, levels.options()).mul(kLevels).unsqueeze(1);
  const at::Tensor counts = at::zeros({rows * kLevels}, levels.options());
  const at::Tensor index = (levels + first).flatten();
  return counts.scatter_add(0, index, at::ones_like(index)).view({rows, kLevels});
}

/// Levels from the lowest to the highest of a channel to all of them: ImageOps.autocontrast.
at::Tensor stretched(const at::Tensor& counts, const at::Tensor& level) {
  const at::Tensor there = counts.gt(0).to(at::kInt);
  const at::Tensor low = there.argmax(1, /*keepdim=*/true);
  const at::Tensor high = kLevels - 1 - there.flip(1).argmax(1, /*keepdim=*/true);
  const at::Tensor scale = at::full({}, 255.0, level.options().dtype(at::kDouble)) /
                           (high - low).clamp_min(1).to(at::kDouble);
  const at::Tensor offset = -low.to(at::kDouble) * scale;
  const at::Tensor table = (level * scale + offset).trunc().clamp(0, kLevels - 1).to(at::kLong);
  return at::where(high.gt(low), table, level);
}

/// All levels about as often: ImageOps.equalize.
at::Tensor equalized(const at::Tensor& counts, const at::Tensor& level) {
  const at::Tensor there = counts.gt(0).to(at::kInt);
  const at::Tensor high = kLevels - 1 - there.flip(1).argmax(1, /*keepdim=*/true);
  const at::Tensor total = counts.sum(1, /*keepdim=*/true);
  const at::Tensor step = (total - counts.gather(1, high)).div(255, "floor");
  const at::Tensor some = step.clamp_min(1);
  const at::Tensor below = counts.cumsum(1) - counts;
  const at::Tensor table = (below + step.div(2, "floor")).div(some, "floor").clamp_max(255);
  return at::where(step.gt(0), table, level);
}

/// The levels of pictures [chains, N, 3, pixels] by tables.
at::Tensor releveled(const at::Tensor& pictures, const Changes& by) {
  const std::int64_t chains = pictures.size(0);
  const at::Tensor flat = pictures.flatten(0, 2);
  const at::Tensor counts = counts_of(flat);
  const at::Tensor level = at::arange(kLevels, flat.options()).unsqueeze(0);
  const auto by_row = [&](const at::Tensor& numbers) {
    return numbers.unsqueeze(1).expand({chains, flat.size(0) / chains}).reshape({-1, 1});
  };
  const at::Tensor coarse = by_row(by.coarse).to(at::kLong);
  const at::Tensor inverted = at::where(level.ge(by_row(by.threshold)), kLevels - 1 - level, level);
  at::Tensor table = inverted.div(coarse, "floor") * coarse;
  table = at::where(by_row(by.stretch).gt(0), stretched(counts, level), table);
  table = at::where(by_row(by.equalize).gt(0), equalized(counts, level), table);
  return table.gather(1, flat).view(pictures.sizes());
}

/// Cropped out of a picture padded in black, and mirrored.
at::Tensor cropped(const at::Tensor& levels, const at::Tensor& numbers) {
  const auto along = [&](std::int64_t side, const at::Tensor& drawn) {
    const std::int64_t room = side / 8;
    const at::Tensor shift = (drawn * static_cast<double>(2 * room + 1))
                                 .floor()
                                 .clamp_max(2.0 * static_cast<double>(room));
    return shift.to(at::kLong) - room;
  };
  const std::int64_t height = levels.size(2), width = levels.size(3);
  const at::Tensor row = at::arange(height, levels.options());
  const at::Tensor column = at::arange(width, levels.options());
  const at::Tensor from_y = row + along(height, numbers[1]);
  const at::Tensor from_x =
      at::where(numbers[2].gt(0), width - 1 - column, column) + along(width, numbers[0]);
  const auto inside = [](const at::Tensor& from, std::int64_t side) {
    return from.ge(0).logical_and(from.lt(side));
  };
  const at::Tensor there = inside(from_y, height).unsqueeze(1).logical_and(inside(from_x, width));
  const at::Tensor moved = levels.index_select(2, from_y.clamp(0, height - 1))
                               .index_select(3, from_x.clamp(0, width - 1));
  return moved * there;
}

}  // namespace

AugmixView::AugmixView(const Options& options) : options_(options) {
  check_ranges(view_ranges(), "view augmix", options);
}

void AugmixView::attach(at::Device device, const Preprocessing& preprocessing) {
  preprocessing_ = preprocessing;
  drawn_.attach(device);
}

void AugmixView::draw(std::uint64_t seed, std::int64_t number, int count) {
  AugmixDraw* drawn = drawn_.begin(count);
  for (int which = 0; which < count; ++which) {
    Random random(seed, "augmix view",
                  {static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(which)});
    drawn[which] = draw_augmix(random, options_.severity);
  }
}

at::Tensor AugmixView::look(const at::Tensor& images, int which) {
  const at::Tensor dense = checked_images(images);
  const AugmixDraw* drawn = drawn_.host(which);
  const auto* numbers = reinterpret_cast<const double*>(drawn);
  if (dense.is_cuda()) {
    auto* place = reinterpret_cast<double*>(drawn_.device(which));
    const at::Tensor there = cuda_numbers(numbers, place, kAugmixNumbers, dense.device());
    if (there.defined()) return augmixed(dense, there, preprocessing_);
  }
  const at::Tensor copy = at::empty({kAugmixNumbers}, at::kDouble);
  std::copy_n(numbers, kAugmixNumbers, copy.mutable_data_ptr<double>());
  return augmixed(dense, copy.to(dense.device()), preprocessing_);
}

at::Tensor augmixed(const at::Tensor& images, const at::Tensor& numbers,
                    const Preprocessing& preprocessing) {
  const c10::NoGradGuard no_grad;
  if (images.size(0) == 0) return at::empty_like(images);
  const auto channels = [&](const std::array<double, 3>& values) {
    at::Tensor made = at::empty({1, 3, 1, 1}, numbers.options());
    for (std::int64_t c = 0; c < 3; ++c)
      made.select(1, c).fill_(values[static_cast<std::size_t>(c)]);
    return made;
  };
  const at::Tensor mean = channels(preprocessing.mean), deviation = channels(preprocessing.std);
  const bool red_last = preprocessing.channels == "bgr";
  const at::Tensor outside =
      channels({red_last ? 0.0 : 128.0, 0, red_last ? 128.0 : 0.0}).to(at::kLong);

  const at::Tensor exact = (images.to(at::kDouble) * deviation + mean) * 255;
  const at::Tensor levels = exact.nan_to_num(0).round().clamp(0, 255).to(at::kLong);
  const at::Tensor picture = cropped(levels.contiguous(), numbers);
  const at::Tensor weights = numbers.narrow(0, 4, kAugmixChains);
  const at::Tensor changes =
      numbers.narrow(0, 4 + kAugmixChains, kAugmixNumbers - 4 - kAugmixChains)
          .view({kAugmixChains, kAugmixDeepest, kChangeNumbers});
  const std::int64_t height = images.size(2), width = images.size(3);
  at::Tensor chains = picture.flatten(2).unsqueeze(0).repeat({kAugmixChains, 1, 1, 1});
  for (std::int64_t step = 0; step < kAugmixDeepest; ++step) {
    const Changes by(changes.select(1, step));
    chains = releveled(warped(chains, places_of(by, height, width), outside), by);
  }
  const at::Tensor mixed = (chains.to(at::kDouble) * wide(weights, 4)).sum(0).view_as(picture);
  const at::Tensor pixels = picture * numbers[3] + mixed * (1 - numbers[3]);
  const at::Tensor broken = at::isfinite(exact).flatten(1).all(1).logical_not();
  return ((pixels / 255 - mean) / deviation)
      .masked_fill(broken.view({-1, 1, 1, 1}), std::numeric_limits<double>::quiet_NaN())
      .to(at::kFloat)
      .contiguous(images.suggest_memory_format());
}

}  // namespace gala
