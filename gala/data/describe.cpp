#include "gala/data/describe.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "gala/base/interrupt.h"

namespace gala {
namespace {

/// Takes pictures from a common counter until there are none left; the sums are its own.
struct Reader {
  DomainSummary sizes;
  std::vector<std::pair<std::int64_t, std::string>> unreadable;
  std::exception_ptr failure;

  void run(const Dataset& data, std::atomic<std::int64_t>& next) {
    Image image;
    try {
      while (!interrupted()) {
        const std::int64_t index = next++;
        if (index >= data.size()) return;
        try {
          data.read(index, image);
        } catch (const FormatError& error) {
          unreadable.emplace_back(index, error.what());
          continue;
        }
        include(image.height, image.width, image.height, image.width);
      }
    } catch (...) {
      failure = std::current_exception();
      next = data.size();
    }
  }

  void include(std::int64_t low_height, std::int64_t low_width, std::int64_t high_height,
               std::int64_t high_width) {
    const bool first = sizes.largest_height == 0;
    sizes.smallest_height = first ? low_height : std::min(sizes.smallest_height, low_height);
    sizes.smallest_width = first ? low_width : std::min(sizes.smallest_width, low_width);
    sizes.largest_height = std::max(sizes.largest_height, high_height);
    sizes.largest_width = std::max(sizes.largest_width, high_width);
  }
};

DomainSummary describe_domain(const Domain& domain, int threads,
                              const std::function<void(std::int64_t)>& progress) {
  const Dataset& data = *domain.data;
  std::vector<Reader> readers(static_cast<std::size_t>(std::max(1, threads)));
  std::atomic<std::int64_t> next{0};
  {
    std::vector<std::jthread> running;
    for (Reader& reader : readers) running.emplace_back([&] { reader.run(data, next); });
    while (next < data.size() && !interrupted()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (progress) progress(std::min(next.load(), data.size()));
    }
  }
  if (interrupted()) throw Interrupted("stopped while reading the data");
  Reader total;
  for (Reader& reader : readers) {
    if (reader.failure) std::rethrow_exception(reader.failure);
    if (reader.sizes.largest_height > 0) {
      total.include(reader.sizes.smallest_height, reader.sizes.smallest_width,
                    reader.sizes.largest_height, reader.sizes.largest_width);
    }
    total.unreadable.insert(total.unreadable.end(), reader.unreadable.begin(),
                            reader.unreadable.end());
  }
  std::sort(total.unreadable.begin(), total.unreadable.end());
  DomainSummary summary = std::move(total.sizes);
  summary.name = domain.name;
  summary.pictures = data.size();
  for (auto& [index, message] : total.unreadable) summary.unreadable.push_back(std::move(message));
  summary.class_counts.resize(static_cast<std::size_t>(data.classes()));
  for (std::int64_t i = 0; i < data.size() && data.labelled(); ++i) {
    ++summary.class_counts[static_cast<std::size_t>(data.label(i))];
  }
  return summary;
}

}  // namespace

std::vector<DomainSummary> describe_data(const DataSource& source, int threads,
                                         const std::function<void(std::int64_t)>& progress) {
  std::vector<DomainSummary> summaries;
  std::int64_t done = 0;
  for (const Domain& domain : source.domains) {
    summaries.push_back(describe_domain(domain, threads, [&](std::int64_t here) {
      if (progress) progress(done + here);
    }));
    done += domain.data->size();
    if (progress) progress(done);
  }
  return summaries;
}

}  // namespace gala
