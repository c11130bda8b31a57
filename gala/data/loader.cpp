#include "gala/data/loader.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "gala/device/upload.h"

namespace gala {
namespace {

/// Pictures a thread takes at once: enough to make locking cheap, few enough to share one batch.
constexpr std::int64_t kChunk = 8;

struct Scratch {
  Image image;
  TransformScratch transform;
};

/// A batch in the making.
struct Pending {
  BatchSpan span;
  std::int64_t number = 0;
  std::int64_t height = 0, width = 0;
  at::Tensor images;
  float* values = nullptr;
  std::vector<std::exception_ptr> errors;  ///< one for each picture
  std::vector<FloatRange> ranges;          ///< the same; empty ones for pictures of bytes
  std::int64_t taken = 0;
  std::int64_t done = 0;

  bool complete() const { return done == span.size; }
  bool faultless() const {
    return std::none_of(errors.begin(), errors.end(), [](const auto& error) { return !!error; });
  }
};

}  // namespace

struct Loader::Work {
  const Stream& stream;
  std::unique_ptr<const Transform> own_transform;
  const Transform& transform;
  LoaderOptions options;
  Uploader uploader;
  std::optional<Upload> ahead;  ///< the images of the window's first batch, on their way
  std::vector<BatchSpan> spans;
  std::vector<std::string> skipped;
  FloatRange range;
  std::exception_ptr failure;

  std::mutex mutex;
  std::condition_variable more_work, more_done;
  std::deque<std::unique_ptr<Pending>> window;  ///< batches begun and not yet given out, in order
  std::size_t next_span = 0;                    ///< the first batch not begun
  std::atomic<bool> stopping = false;
  Scratch own_scratch;
  std::vector<std::jthread> threads;

  Work(const Stream& a_stream, std::unique_ptr<const Transform> owned, const Transform& a_transform,
       const LoaderOptions& an_options)
      : stream(a_stream),
        own_transform(std::move(owned)),
        transform(a_transform),
        options(an_options),
        uploader(options.device),
        spans(stream.batches(options.batch_size)) {
    if (options.threads < 0 || options.threads > 1024) {
      fail<ConfigError>("the number of loader threads cannot be {} (expected 0 to 1024)",
                        options.threads);
    }
    options.prefetch = std::max(1, options.prefetch);
    while (next_span < spans.size() && spans[next_span].begin < options.first_position) ++next_span;
    const std::int64_t begin =
        next_span < spans.size() ? spans[next_span].begin : spans.back().begin + spans.back().size;
    if (options.first_position != begin && options.first_position != stream.size()) {
      fail<ConfigError>("position {} does not begin a batch of {} pictures", options.first_position,
                        options.batch_size);
    }
    try {
      for (int i = 0; i < options.threads; ++i) threads.emplace_back([this] { run(); });
    } catch (...) {
      stop();  // those that the system did grant
      throw;
    }
  }

  ~Work() { stop(); }

  void stop() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    more_work.notify_all();
    threads.clear();
  }

  const Domain& domain_at(std::int64_t position) const {
    return stream
        .domains[static_cast<std::size_t>(stream.items[static_cast<std::size_t>(position)].domain)];
  }

  /// Begins the next batch: its memory, and a size that all its pictures have.
  void begin_batch() {
    auto pending = std::make_unique<Pending>();
    pending->span = spans[next_span];
    pending->number = static_cast<std::int64_t>(next_span++);
    const auto [height, width] = domain_at(pending->span.begin).data->plane_size();
    pending->height = height ? height : transform.size();
    pending->width = width ? width : transform.size();
    pending->images =
        at::empty({pending->span.size, 3, pending->height, pending->width},
                  at::TensorOptions(at::kFloat).pinned_memory(!options.device.is_cpu()));
    pending->values = pending->images.mutable_data_ptr<float>();
    pending->errors.resize(static_cast<std::size_t>(pending->span.size));
    pending->ranges.resize(static_cast<std::size_t>(pending->span.size));
    window.push_back(std::move(pending));
  }

  void make_picture(Pending& pending, std::int64_t slot, Scratch& scratch) const {
    const std::int64_t position = pending.span.begin + slot;
    const Dataset& data = *domain_at(position).data;
    const auto [height, width] = data.plane_size();
    if ((height ? height : transform.size()) != pending.height ||
        (width ? width : transform.size()) != pending.width) {
      fail<ConfigError>("{}: pictures of different sizes in one batch ({} x {} and {} x {})",
                        stream.item_name(position), width, height, pending.width, pending.height);
    }
    float* out = pending.values + slot * 3 * pending.height * pending.width;
    data.read(stream.items[static_cast<std::size_t>(position)].index, scratch.image);
    if (height) {
      pending.ranges[static_cast<std::size_t>(slot)] = range_of(scratch.image.planes);
      std::memcpy(out, scratch.image.planes.data(), scratch.image.planes.size() * sizeof(float));
    } else {
      transform.apply(scratch.image, static_cast<std::uint64_t>(pending.number),
                      static_cast<std::uint64_t>(slot), scratch.transform, out);
    }
  }

  void make_pictures(Pending& pending, std::int64_t begin, std::int64_t end, Scratch& scratch) {
    for (std::int64_t slot = begin; slot < end && !stopping; ++slot) {
      try {
        make_picture(pending, slot, scratch);
      } catch (...) {
        pending.errors[static_cast<std::size_t>(slot)] = std::current_exception();
      }
    }
  }

  /// A batch that still has pictures to make, begun now if there is room; else null.
  Pending* find_work() {
    for (const auto& pending : window) {
      if (pending->taken < pending->span.size) return pending.get();
    }
    if (next_span == spans.size() || window.size() >= static_cast<std::size_t>(options.prefetch)) {
      return nullptr;
    }
    begin_batch();
    return window.back().get();
  }

  void run() {
    Scratch scratch;
    std::unique_lock lock(mutex);
    while (true) {
      Pending* pending = nullptr;
      try {
        more_work.wait(lock, [&] { return stopping || (pending = find_work()); });
      } catch (...) {
        // No memory for a batch: the caller must hear of it.
        failure = std::current_exception();
        stopping = true;
        more_done.notify_all();
      }
      if (stopping) return;
      const std::int64_t begin = pending->taken;
      const std::int64_t end = std::min(begin + kChunk, pending->span.size);
      pending->taken = end;
      lock.unlock();
      more_work.notify_one();
      make_pictures(*pending, begin, end, scratch);
      lock.lock();
      pending->done += end - begin;
      if (pending->complete()) more_done.notify_all();
    }
  }

  void throw_failure() {
    const std::lock_guard lock(mutex);
    if (failure) std::rethrow_exception(failure);
  }

  /// The first batch of the window, complete; null at the end of the stream.
  std::unique_ptr<Pending> take_front() {
    std::unique_lock lock(mutex);
    if (threads.empty()) {
      if (next_span == spans.size()) return nullptr;
      begin_batch();
      Pending& pending = *window.front();
      make_pictures(pending, 0, pending.span.size, own_scratch);
    } else {
      more_done.wait(lock, [&] {
        if (failure) return true;
        if (window.empty()) return next_span == spans.size();
        return window.front()->complete();
      });
      if (failure) std::rethrow_exception(failure);
      if (window.empty()) return nullptr;
    }
    std::unique_ptr<Pending> front = std::move(window.front());
    window.pop_front();
    lock.unlock();
    more_work.notify_all();
    return front;
  }

  /// Throws the first error that counts; with skip_unreadable moves the readable pictures together.
  Batch finish(Pending& pending) {
    Batch batch;
    batch.segment = pending.span.segment;
    batch.number = pending.number;
    const std::int64_t each = 3 * pending.height * pending.width;
    for (std::int64_t slot = 0; slot < pending.span.size; ++slot) {
      if (const auto& error = pending.errors[static_cast<std::size_t>(slot)]) {
        try {
          std::rethrow_exception(error);
        } catch (const FormatError& unreadable) {
          if (!options.skip_unreadable) throw;
          skipped.emplace_back(unreadable.what());
          continue;
        }
      }
      const std::int64_t position = pending.span.begin + slot;
      if (batch.size() != slot) {
        std::memcpy(pending.values + batch.size() * each, pending.values + slot * each,
                    static_cast<std::size_t>(each) * sizeof(float));
      }
      if (const FloatRange& held = pending.ranges[static_cast<std::size_t>(slot)]; !held.empty()) {
        range.include(held, held.not_finite > 0 ? stream.item_name(position) : "");
      }
      batch.positions.push_back(position);
      batch.labels.push_back(stream.label(position));
      batch.domains.push_back(stream.items[static_cast<std::size_t>(position)].domain);
    }
    if (!ahead) ahead = uploader.begin(pending.images.narrow(0, 0, batch.size()));
    batch.images = ahead->take();
    ahead.reset();
    return batch;
  }

  /// Begins the copy of the batch that will be asked for next, if it is made already. One that has
  /// a fault waits for its turn.
  void look_ahead() {
    if (options.device.is_cpu()) return;
    const std::lock_guard lock(mutex);
    if (window.empty() || !window.front()->complete() || !window.front()->faultless()) return;
    ahead = uploader.begin(window.front()->images);
  }
};

Loader::Loader(const Stream& stream, const Preprocessing& preprocessing,
               const LoaderOptions& options) {
  auto transform = std::make_unique<const EvaluationTransform>(preprocessing);
  const Transform& reference = *transform;
  work_ = std::make_unique<Work>(stream, std::move(transform), reference, options);
}

Loader::Loader(const Stream& stream, const Transform& transform, const LoaderOptions& options)
    : work_(std::make_unique<Work>(stream, nullptr, transform, options)) {}

Loader::~Loader() = default;

std::optional<Batch> Loader::next() {
  work_->throw_failure();
  try {
    while (const auto pending = work_->take_front()) {
      Batch batch = work_->finish(*pending);
      work_->look_ahead();
      if (batch.size() > 0) return batch;
    }
  } catch (...) {
    const std::lock_guard lock(work_->mutex);
    work_->failure = std::current_exception();
    throw;
  }
  return std::nullopt;
}

std::int64_t Loader::batch_count() const {
  return static_cast<std::int64_t>(work_->spans.size());
}

const std::vector<std::string>& Loader::skipped() const {
  return work_->skipped;
}

const FloatRange& Loader::float_range() const {
  return work_->range;
}

}  // namespace gala
