// In the steady state only forward and backward allocate tensors.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <gtest/gtest.h>

#include "gala/adapt/adapter.h"

namespace gala {
namespace {

/// Counts the tensors' memory that this thread asks for.
class Counter : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, std::int64_t size, std::size_t, std::size_t, c10::Device) override {
    if (size > 0) ++count;
  }
  bool memoryProfilingEnabled() const override { return true; }
  std::int64_t count = 0;
};

struct Counts {
  std::shared_ptr<Counter> counter = std::make_shared<Counter>();
  std::int64_t inside = 0;  ///< asked for by the parts that are watched

  template <class Work>
  auto watch(const Work& work) {
    struct Difference {
      Counts& counts;
      std::int64_t before = counts.counter->count;
      ~Difference() { counts.inside += counts.counter->count - before; }
    } difference{*this};
    return work();
  }
};

class WatchedOptimizer : public Optimizer {
 public:
  WatchedOptimizer(const char* spec, Counts& counts)
      : inner_(make_optimizer(Spec::parse(spec))), counts_(counts) {}
  void attach(const StepSite& site) override { inner_->attach(site); }
  void prepare() override {
    counts_.watch([&] { inner_->prepare(); });
  }
  void measure(GradientPointers gradients, const float* loss, const DisplacementView& displacement,
               double* table) override {
    counts_.watch([&] { inner_->measure(gradients, loss, displacement, table); });
  }
  void apply(GradientPointers gradients, const DisplacementView& displacement,
             std::span<const double> weights) override {
    counts_.watch([&] { inner_->apply(gradients, displacement, weights); });
  }
  void step(GradientPointers gradients) override { inner_->step(gradients); }
  double learning_rate() const override { return inner_->learning_rate(); }
  void set_learning_rate(double rate) override { inner_->set_learning_rate(rate); }
  void reset() override { inner_->reset(); }
  void remember(Archive& archive) override { inner_->remember(archive); }

 private:
  std::unique_ptr<Optimizer> inner_;
  Counts& counts_;
};

class WatchedSelector : public Selector {
 public:
  explicit WatchedSelector(Counts& counts)
      : inner_(make_selector(Spec::parse("gala"), 0)), counts_(counts) {}
  std::vector<double> select(const Proposal& proposal) override {
    return counts_.watch([&] { return inner_->select(proposal); });
  }
  Window window() const override { return inner_->window(); }

 private:
  std::unique_ptr<Selector> inner_;
  Counts& counts_;
};

TEST(SteadyState, MeasuringChoosingAndMovingAllocateNoTensor) {
  const int threads = at::get_num_threads();
  at::set_num_threads(1);  // only this thread is counted
  for (const char* spec : {"adam", "sgd:momentum=0.9,moments=selected"}) {
    Counts counts;
    const auto model = make_model(Spec::parse("wide_resnet:depth=10,width=1,classes=10"));
    Adapter adapter(*model, {.loss = "shot"},
                    {.parts = {.optimizer = std::make_unique<WatchedOptimizer>(spec, counts),
                               .selector = std::make_unique<WatchedSelector>(counts)}});
    const at::Tensor images = at::rand({4, 3, 32, 32});
    adapter.answer(images);
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, counts.counter);
    for (int step = 0; step < 45; ++step) adapter.answer(images);  // two openings of a window
    EXPECT_EQ(counts.inside, 0) << spec;
    EXPECT_GT(counts.counter->count, 0) << "forward and backward must have been counted";
  }
  at::set_num_threads(threads);
}

}  // namespace
}  // namespace gala
