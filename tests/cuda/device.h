#pragma once
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "gala/device/work_queue.h"

namespace gala {

/// A test that needs a GPU and the kernels for it.
class OnCuda : public testing::Test {
 protected:
  void SetUp() override {
    if (!at::globalContext().hasCUDA() || !built_with_cuda()) {
      GTEST_SKIP() << "no GPU, or built without CUDA";
    }
  }
};

}  // namespace gala
