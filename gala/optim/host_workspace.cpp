#include "gala/optim/host_workspace.h"

#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <cstring>
#include <new>

#include "gala/optim/cpu_sweep.h"

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace gala {
namespace {

/// How OpenMP's threads wait for each other ThreadSanitizer does not see: it is told. What comes before `tell` in one
/// thread is done before what comes behind `hear` in another.
struct Order {
#ifdef __SANITIZE_THREAD__
  char place = 0;
  void tell() {
    __tsan_release(&place);
  }
  void hear() {
    __tsan_acquire(&place);
  }
#else
  void tell() {}
  void hear() {}
#endif
};

/// Memory begins on a cache line: threads write side by side.
constexpr std::align_val_t kLine{64};

/// Σ x² / (Var x + floor), or with `mean` Σ x̄² / (Var x + floor) once, of `count` numbers.
template <class At>
double signal(const At& at, std::int64_t count, double floor, bool of_mean) {
  double sum = 0, squares = 0, spread = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += at(i);
  const double mean = sum / static_cast<double>(count);
  for (std::int64_t i = 0; i < count; ++i) {
    squares += at(i) * at(i);
    spread += (at(i) - mean) * (at(i) - mean);
  }
  const double variance = count > 1 ? spread / static_cast<double>(count - 1) : 0;
  return (of_mean ? mean * mean : squares) / (variance + floor);
}

}  // namespace

Memory HostWorkspace::make(std::int64_t bytes) {
  void* begin = ::operator new(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)), kLine);
  std::memset(begin, 0, static_cast<std::size_t>(bytes));
  return {std::shared_ptr<void>(begin, [](void* memory) { ::operator delete(memory, kLine); }),
          bytes};
}

void HostWorkspace::zero(const Memory& memory) {
  std::memset(memory.data<void>(), 0, static_cast<std::size_t>(memory.bytes()));
}

void HostWorkspace::copy(void* to, const void* from, std::int64_t bytes) {
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

void HostWorkspace::fetch(void* host, const void* device, std::int64_t bytes) {
  copy(host, device, bytes);
}

void HostWorkspace::share_out(std::int64_t count, SharedWork work) {
#ifdef _OPENMP
  const int threads = threads_ > 0 ? threads_ : omp_get_max_threads();
  if (threads > 1 && count > 1 && !omp_in_parallel()) {
    static Order begins, ends;  // no captured variable is read before it is heard of
    begins.tell();
#pragma omp parallel num_threads(threads)
    {
      begins.hear();
      const std::int64_t part = omp_get_thread_num(), parts = omp_get_num_threads();
      const std::int64_t from = count * part / parts, to = count * (part + 1) / parts;
      if (from < to) work(from, to);
      ends.tell();
    }
    ends.hear();
    return;
  }
#endif
  if (count > 0) work(0, count);
}

std::unique_ptr<Sweep<AdamRule>> HostWorkspace::make_sweep(const SweepContext<AdamRule>& context) {
  return std::make_unique<CpuSweep<AdamRule>>(context);
}

std::unique_ptr<Sweep<SgdRule>> HostWorkspace::make_sweep(const SweepContext<SgdRule>& context) {
  return std::make_unique<CpuSweep<SgdRule>>(context);
}

std::vector<double> HostWorkspace::signal_over_rows(const ArenaLayout& layout,
                                                    GradientPointers gradients, double floor) {
  std::vector<double> signals(layout.entries.size(), 0.0);
  for (std::size_t t = 0; t < signals.size(); ++t) {
    const ArenaLayout::Entry& entry = layout.entries[t];
    const float* gradient = gradients[t];
    if (!gradient) continue;
    const std::int64_t rows = entry.sizes.empty() ? 1 : entry.sizes[0];
    const std::int64_t stride = rows > 1 ? entry.strides[0] : 1;
    for (std::int64_t k = 0; k < entry.range.size; ++k) {
      if (rows > 1 && k / stride % rows != 0) continue;  // not at the axis' first place
      signals[t] +=
          signal([&](std::int64_t row) { return static_cast<double>(gradient[k + row * stride]); },
                 rows, floor, /*of_mean=*/false);
    }
  }
  return signals;
}

std::vector<double> HostWorkspace::signal_over_buffers(const ArenaLayout& layout,
                                                       std::span<const Memory> buffers,
                                                       double floor) {
  std::vector<double> signals(layout.entries.size(), 0.0);
  for (std::size_t t = 0; t < signals.size(); ++t) {
    const Range range = layout.entries[t].range;
    for (std::int64_t k = range.begin; k < range.begin + range.size; ++k) {
      signals[t] += signal(
          [&](std::int64_t b) {
            return static_cast<double>(buffers[static_cast<std::size_t>(b)].data()[k]);
          },
          std::ssize(buffers), floor, /*of_mean=*/true);
    }
  }
  return signals;
}

}  // namespace gala
