// What libFuzzer calls; GALA_FUZZ_TARGET is the name of the target.
#include "fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  gala::fuzz::GALA_FUZZ_TARGET({data, size});
  return 0;
}
