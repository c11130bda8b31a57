#include "gala/data/corruption/corruption_writer.h"

#include <algorithm>
#include <array>
#include <ostream>

#include "gala/base/error.h"
#include "gala/base/interrupt.h"
#include "gala/data/corruption/jpeg_round_trip.h"
#include "gala/data/corruption/share_out.h"
#include "gala/data/npy.h"

namespace gala {
namespace {

/// Images made before they are written together: enough to keep threads busy, small in memory.
std::int64_t chunk_for(CorruptionSet set) {
  return set == CorruptionSet::kCifar ? 1024 : 256;
}

void corrupt_item(const Dataset& clean, const Corruptor& corruptor, int quality, std::int64_t index,
                  Image& image, std::span<std::uint8_t> output) {
  clean.read(index, image);
  const std::int64_t side = corruption_side(corruptor.set());
  const bool fits = image.height == side && image.width == side;
  if (!fits || image.pixels.empty()) {
    fail<ConfigError>(
        "{}: {}x{} {} cannot be corrupted (expected {}x{} RGB bytes, which the constants of the "
        "set {} "
        "are for)",
        clean.item_name(index), image.height, image.width,
        image.pixels.empty() ? "floats" : "pixels", side, side,
        enum_names(corruptor.set())[static_cast<std::size_t>(corruptor.set())]);
  }
  corruptor.apply(index, image.pixels, output);
  if (quality > 0) jpeg_round_trip(output.data(), static_cast<int>(side), quality, output.data());
}

/// Fills `bytes` with images begin .. end-1.
void make_chunk(const Dataset& clean, const Corruptor& corruptor, std::int64_t begin,
                std::int64_t end, const CorruptionWriterOptions& options,
                std::span<std::uint8_t> bytes) {
  std::vector<Image> images(
      static_cast<std::size_t>(options.threads));  // whose buffers are used again
  const auto each = static_cast<std::size_t>(corruption_bytes(options.set));
  share_out(begin, end, options.threads, [&](int thread, std::int64_t i) {
    corrupt_item(clean, corruptor, options.quality, i, images[static_cast<std::size_t>(thread)],
                 bytes.subspan(static_cast<std::size_t>(i - begin) * each, each));
  });
}

}  // namespace

void write_corrupted(const std::filesystem::path& path, const Dataset& clean, Corruption corruption,
                     const CorruptionWriterOptions& options) {
  if (options.threads < 1) fail<ConfigError>("threads cannot be {}", options.threads);
  const std::int64_t count = clean.size();
  std::vector<Corruptor> parts;
  for (int severity : options.severities) {
    parts.emplace_back(corruption, severity, options.seed, options.textures, options.set);
  }
  const std::int64_t side = corruption_side(options.set), each = corruption_bytes(options.set);
  const std::int64_t chunk = chunk_for(options.set);
  const std::array<std::int64_t, 4> shape{static_cast<std::int64_t>(parts.size()) * count, side,
                                          side, 3};
  write_npy(path, "|u1", shape, [&](std::ostream& out) {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(chunk * each));
    std::int64_t done = 0;
    for (const auto& part : parts) {
      for (std::int64_t begin = 0; begin < count; begin += chunk) {
        if (interrupted()) throw Interrupted("stopped; " + path.string() + " was not written");
        const std::int64_t end = std::min(begin + chunk, count);
        make_chunk(clean, part, begin, end, options, bytes);
        out.write(reinterpret_cast<const char*>(bytes.data()), (end - begin) * each);
        done += end - begin;
        if (options.progress) options.progress(done);
      }
    }
  });
}

void write_labels(const std::filesystem::path& path, const Dataset& clean, int repeats) {
  std::int64_t largest = 0;
  std::vector<std::int64_t> labels;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    for (std::int64_t i = 0; i < clean.size(); ++i) {
      labels.push_back(clean.label(i));
      largest = std::max(largest, labels.back());
    }
  }
  const std::array<std::int64_t, 1> shape{static_cast<std::int64_t>(labels.size())};
  if (largest < 256) {
    const std::vector<std::uint8_t> bytes(labels.begin(), labels.end());
    write_npy(path, "|u1", shape, [&](std::ostream& out) {
      out.write(reinterpret_cast<const char*>(bytes.data()),
                static_cast<std::streamsize>(bytes.size()));
    });
  } else {
    write_npy(path, "<i8", shape, [&](std::ostream& out) {
      out.write(reinterpret_cast<const char*>(labels.data()),
                static_cast<std::streamsize>(labels.size() * sizeof(std::int64_t)));
    });
  }
}

}  // namespace gala
