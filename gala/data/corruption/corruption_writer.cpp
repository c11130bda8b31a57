#include "gala/data/corruption/corruption_writer.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <ostream>
#include <thread>

#include "gala/base/error.h"
#include "gala/base/interrupt.h"
#include "gala/data/npy.h"

namespace gala {
namespace {

/// Images made before they are written together: enough to keep threads busy, small in memory.
constexpr std::int64_t kChunk = 1024;

void corrupt_item(const Dataset& clean, const Corruptor& corruptor, std::int64_t index,
                  Image& image, std::span<std::uint8_t> output) {
  clean.read(index, image);
  const bool fits = image.height == kCorruptionSide && image.width == kCorruptionSide;
  if (!fits || image.pixels.empty()) {
    fail<ConfigError>(
        "{}: {}x{} {} cannot be corrupted (expected {}x{} RGB bytes, which the "
        "published constants are for)",
        clean.item_name(index), image.height, image.width,
        image.pixels.empty() ? "floats" : "pixels", kCorruptionSide, kCorruptionSide);
  }
  corruptor.apply(index, image.pixels, output);
}

/// Fills `bytes` with images begin .. end-1. Of several errors the one of the first image is thrown,
/// so that the message does not depend on the threads.
void make_chunk(const Dataset& clean, const Corruptor& corruptor, std::int64_t begin,
                std::int64_t end, int threads, std::span<std::uint8_t> bytes) {
  std::atomic<std::int64_t> next{begin};
  struct Failure {
    std::int64_t index;
    std::exception_ptr error;
  };
  std::vector<Failure> failures(static_cast<std::size_t>(threads));
  auto work = [&](Failure& failure) {
    Image image;
    for (std::int64_t i = next++; i < end; i = next++) {
      try {
        corrupt_item(clean, corruptor, i, image,
                     bytes.subspan(static_cast<std::size_t>((i - begin) * kCorruptionBytes),
                                   kCorruptionBytes));
      } catch (...) {
        failure = {i, std::current_exception()};
        return;
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (int t = 1; t < threads; ++t) {
      helpers.emplace_back([&work, &failures, t] { work(failures[static_cast<std::size_t>(t)]); });
    }
    work(failures[0]);
  }
  const Failure* first = nullptr;
  for (const auto& failure : failures) {
    if (failure.error && (!first || failure.index < first->index)) first = &failure;
  }
  if (first) std::rethrow_exception(first->error);
}

}  // namespace

void write_corrupted(const std::filesystem::path& path, const Dataset& clean, Corruption corruption,
                     const CorruptionWriterOptions& options) {
  if (options.threads < 1) fail<ConfigError>("threads cannot be {}", options.threads);
  const std::int64_t count = clean.size();
  std::vector<Corruptor> parts;
  for (int severity : options.severities) {
    parts.emplace_back(corruption, severity, options.seed, options.textures);
  }
  const std::array<std::int64_t, 4> shape{static_cast<std::int64_t>(parts.size()) * count,
                                          kCorruptionSide, kCorruptionSide, 3};
  write_npy(path, "|u1", shape, [&](std::ostream& out) {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(kChunk * kCorruptionBytes));
    std::int64_t done = 0;
    for (const auto& part : parts) {
      for (std::int64_t begin = 0; begin < count; begin += kChunk) {
        if (interrupted()) throw Interrupted("stopped; " + path.string() + " was not written");
        const std::int64_t end = std::min(begin + kChunk, count);
        make_chunk(clean, part, begin, end, options.threads, bytes);
        out.write(reinterpret_cast<const char*>(bytes.data()), (end - begin) * kCorruptionBytes);
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
