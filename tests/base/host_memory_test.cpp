#include "gala/base/host_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>

namespace gala {
namespace {

constexpr std::size_t kBytes = std::size_t{96} << 20;  // as a map of a batch at 224 x 224

/// How often the system had to lend a page while a block was taken, filled and freed.
long pages_lent() {
  constexpr std::size_t kPage = 4096;
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  volatile char* const block = static_cast<char*>(std::malloc(kBytes));
  for (std::size_t at = 0; at < kBytes; at += kPage) block[at] = 1;
  std::free(const_cast<char*>(block));
  getrusage(RUSAGE_SELF, &after);
  return after.ru_minflt - before.ru_minflt;
}

TEST(HostMemory, IsNotGivenBackBetweenTwoMaps) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
  GTEST_SKIP() << "another allocator";
#endif
  EXPECT_GT(pages_lent(), 40);  // 48 where pages are huge
  EXPECT_GT(pages_lent(), 40) << "the C library keeps it by itself: nothing to be done";
  keep_freed_memory();
  pages_lent();
  EXPECT_LT(pages_lent(), 20);
}

}  // namespace
}  // namespace gala
