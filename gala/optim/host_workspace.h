#pragma once
#include "gala/optim/workspace.h"

namespace gala {

/// The host's own memory and threads.
class HostWorkspace : public Workspace {
 public:
  /// 0 threads: as many as OpenMP takes.
  explicit HostWorkspace(int threads = 0) : threads_(threads) {}

  Memory make(std::int64_t bytes) override;
  Memory make_on_host(std::int64_t bytes) override { return make(bytes); }
  void zero(const Memory& memory) override;
  void copy(void* to, const void* from, std::int64_t bytes) override;
  void fetch(void* host, const void* device, std::int64_t bytes) override;
  void share_out(std::int64_t count, SharedWork work) override;
  std::unique_ptr<Sweep<AdamRule>> make_sweep(const SweepContext<AdamRule>& context) override;
  std::unique_ptr<Sweep<SgdRule>> make_sweep(const SweepContext<SgdRule>& context) override;
  std::vector<double> signal_over_rows(const ArenaLayout& layout, GradientPointers gradients,
                                       double floor) override;
  std::vector<double> signal_over_buffers(const ArenaLayout& layout,
                                          std::span<const Memory> buffers, double floor) override;

 private:
  int threads_;
};

}  // namespace gala
