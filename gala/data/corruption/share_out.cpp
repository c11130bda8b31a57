#include "gala/data/corruption/share_out.h"

#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace gala {

void share_out(std::int64_t begin, std::int64_t end, int threads,
               const std::function<void(int, std::int64_t)>& work) {
  std::atomic<std::int64_t> next{begin};
  struct Failure {
    std::int64_t index;
    std::exception_ptr error;
  };
  std::vector<Failure> failures(static_cast<std::size_t>(threads));
  const auto run = [&](int thread) {
    for (std::int64_t i = next++; i < end; i = next++) {
      try {
        work(thread, i);
      } catch (...) {
        failures[static_cast<std::size_t>(thread)] = {i, std::current_exception()};
        return;
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (int t = 1; t < threads; ++t) helpers.emplace_back([&run, t] { run(t); });
    run(0);
  }
  const Failure* first = nullptr;
  for (const auto& failure : failures) {
    if (failure.error && (!first || failure.index < first->index)) first = &failure;
  }
  if (first) std::rethrow_exception(first->error);
}

}  // namespace gala
