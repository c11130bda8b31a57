#pragma once
#include <cstdint>
#include <functional>

namespace gala {

/// Calls `work(thread, i)` for each i of begin .. end-1 once, from `threads` threads, of which the
/// caller's is number 0. A thread ends at its first error; of several the one of the least i is thrown,
/// so that the message does not depend on the threads.
void share_out(std::int64_t begin, std::int64_t end, int threads,
               const std::function<void(int, std::int64_t)>& work);

}  // namespace gala
