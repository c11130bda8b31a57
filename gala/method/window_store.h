#pragma once
#include <cstdint>

#include "gala/method/store.h"

namespace gala {

/// The last `length` images: every batch is answered among them, so that batches of one have the statistics
/// of many, and a step is made whenever all of them are new (as in the published code that most
/// methods are compared in, for batches of one). An image that is not finite leaves the window when the next
/// batch comes.
class WindowStore : public Store {
 public:
  struct Options {
    std::int64_t length = 64;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("length", &Options::length, "images kept; no batch may be larger");
    }
  };
  explicit WindowStore(const Options& options);

  void attach(at::Device device, std::int64_t classes) override;
  /// Throws ConfigError for a batch larger than the window.
  Shown show(const at::Tensor& images) override;
  void reset() override;
  void remember(StateArchive& archive) override;

 private:
  Options options_;
  at::Device device_{at::kCPU};
  at::Tensor images_;       ///< [length, 3, H, W]; undefined before the first
  std::int64_t count_ = 0;  ///< how many of them there are
  std::int64_t next_ = 0;   ///< where the next one goes
};

}  // namespace gala
