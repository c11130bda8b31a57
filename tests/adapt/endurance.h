#pragma once
#include <gtest/gtest.h>
#include <malloc.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "gala/base/error.h"
#include "gala/device/device_memory.h"
#include "gala/method/recipe.h"
#include "tests/adapt/toy.h"

namespace gala {

// A long run on a small network that knows something: what grows, what comes apart, what the guard says.

/// Pictures of four kinds, the kind told by which quarter is bright, under light that comes and goes.
struct EasyTask {
  static constexpr std::int64_t kKinds = 4, kSide = 8, kHalf = kSide / 2;
  at::Tensor images;
  std::vector<std::int64_t> kinds;

  explicit EasyTask(std::uint64_t number, std::int64_t count = 16)
      : images(at::empty({count, 3, kSide, kSide})) {
    Random random(11, "easy task", {number});
    const double light = 0.5 + 0.1 * std::sin(0.002 * static_cast<double>(number));
    float* pixel = images.mutable_data_ptr<float>();
    for (std::int64_t i = 0; i < count; ++i) {
      kinds.push_back(static_cast<std::int64_t>(random.below(kKinds)));
      for (std::int64_t p = 0; p < 3 * kSide * kSide; ++p) {
        const std::int64_t row = p / kSide % kSide, column = p % kSide;
        const bool bright = row / kHalf * 2 + column / kHalf == kinds.back();
        *pixel++ = static_cast<float>(light + (bright ? 0.2 : -0.05) + random.uniform(-0.3, 0.3));
      }
    }
  }
  std::int64_t right(const std::vector<std::int64_t>& predictions) const {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < kinds.size(); ++i) count += predictions[i] == kinds[i];
    return count;
  }
};

/// The toy after a hundred steps of gradient descent on the task, its running statistics learned.
inline std::unique_ptr<Model> taught_toy() {
  auto model = toy_model(1, "running:momentum=0.1");
  for (Parameter& parameter : model->parameters()) parameter.value.requires_grad_();
  for (std::uint64_t step = 0; step < 150; ++step) {
    const EasyTask task(1000000 + step, 64);
    // Statistics of the batch while it learns, and its own on the way.
    model->set_norm_mode(NormMode::parse("running:momentum=0.1"));
    {
      const c10::NoGradGuard no_grad;
      model->forward(task.images);
    }
    model->set_norm_mode(NormMode::parse("batch"));
    const at::Tensor log_p = at::log_softmax(model->forward(task.images).logits, 1);
    (-log_p.gather(1, at::tensor(task.kinds).unsqueeze(1)).mean()).backward();
    const c10::NoGradGuard no_grad;
    for (Parameter& parameter : model->parameters()) {
      parameter.value.sub_(parameter.value.grad(), 0.1);
      parameter.value.mutable_grad().reset();
    }
  }
  for (Parameter& parameter : model->parameters()) parameter.value.requires_grad_(false);
  model->set_norm_mode({});
  return model;
}

/// Bytes of this process in memory.
inline double resident_bytes() {
  std::int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

/// Bytes that were asked of the heap and not given back.
inline double heap_bytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return static_cast<double>(info.uordblks) + static_cast<double>(info.hblkhd);
}

/// Of all threads of this process: what else the machine does is not in it.
inline double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Endurance {
  double heap_growth = 0,
         resident_growth = 0;  ///< share, from a third (at most 1,000 batches) to the end
  double device_growth = 0;    ///< of a GPU's memory, the same
  double slower = 0;           ///< time of the last tenth over that of the first
  double error_begin = 0, error_end = 0;  ///< of the first and last tenth
  std::int64_t alarms = 0, steps = 0;
  std::int64_t asked = 0;  ///< judgements for which the guard asked the source
  std::int64_t far_at =
      0;  ///< batch at which the guard's default for the displacement was passed; 0: never
};

/// The adapter's parameters lie in the model's slots, all in one buffer, and are numbers.
inline void expect_together(const Adapter& adapter) {
  const ParameterArena& arena = adapter.parameters();
  std::size_t found = 0;
  for (const Parameter& parameter : adapter.model().parameters()) {
    for (std::size_t i = 0; i < arena.entries().size(); ++i) {
      if (arena.entries()[i].name != parameter.name) continue;
      ASSERT_EQ(parameter.value.const_data_ptr(), arena.view(arena.values(), i).const_data_ptr())
          << parameter.name;
      ++found;
    }
  }
  ASSERT_EQ(found, arena.entries().size());
  ASSERT_TRUE(at::isfinite(arena.values()).all().item<bool>());
}

/// How many batches: few, unless GALA_ENDURANCE says how many.
inline std::int64_t endurance_batches(std::int64_t few) {
  const char* asked = std::getenv("GALA_ENDURANCE");
  return asked ? std::atoll(asked) : few;
}

inline Endurance endure(const MethodOptions& options, std::int64_t batches,
                        at::Device device = at::kCPU) {
  const auto model = taught_toy();
  model->to(device);
  Adapter adapter(*model, options);
  Endurance result;
  const std::int64_t warm = std::min<std::int64_t>(1000, batches / 3), tenth = batches / 10;
  double heap = 0, resident = 0, on_device = 0, first_time = 0, begin = processor_seconds();
  std::int64_t first_wrong = 0, wrong = 0;
  for (std::int64_t n = 1; n <= batches; ++n) {
    const EasyTask task(static_cast<std::uint64_t>(n));
    const Answer answer = adapter.answer(task.images);
    if (n <= tenth || n > batches - tenth) {
      wrong += std::ssize(task.kinds) - task.right(answer.predictions);
    }
    result.alarms += answer.health && answer.health->collapsed;
    result.asked += answer.health && answer.health->agreement;
    if (answer.health && result.far_at == 0 &&
        answer.health->displacement > GuardOptions{}.displacement) {
      result.far_at = n;
    }
    if (n % std::max<std::int64_t>(1, batches / 20) == 0) expect_together(adapter);
    if (n == warm) heap = heap_bytes(), resident = resident_bytes();
    if (n == warm) on_device = static_cast<double>(memory_use(device).current);
    if (n == warm) begin = processor_seconds();
    if (n == warm + tenth) first_time = processor_seconds() - begin;
    if (n == tenth) first_wrong = std::exchange(wrong, 0);
    if (n == batches - tenth) begin = processor_seconds();
  }
  const auto images = static_cast<double>(tenth * 16);
  result.slower = (processor_seconds() - begin) / first_time;
  // The allocator of a sanitizer does not count.
  result.heap_growth = heap > 0 ? heap_bytes() / heap - 1 : 0;
  result.resident_growth = resident_bytes() / resident - 1;
  if (device.is_cuda()) {
    result.device_growth = static_cast<double>(memory_use(device).current) / on_device - 1;
  }
  result.error_begin = static_cast<double>(first_wrong) / images;
  result.error_end = static_cast<double>(wrong) / images;
  result.steps = adapter.totals().steps;
  std::cout << fmt::format(
      "{} batches, {} steps: heap {:+.3f} %, resident {:+.3f} %, time of a step {:+.1f} %, error "
      "{:.2f} % then {:.2f} %, {} alarms, source asked {} times, far at {}, {:.2f} ms a step\n",
      batches, result.steps, 100 * result.heap_growth, 100 * result.resident_growth,
      100 * (result.slower - 1), 100 * result.error_begin, 100 * result.error_end, result.alarms,
      result.asked, result.far_at, 1000 * first_time / static_cast<double>(tenth));
  return result;
}

/// The methods that are made to endure, each of another kind.
inline const char* const kEnduring[] = {"gala", "tent", "sar", "roid", "rotta"};

inline MethodOptions enduring(const std::string& name) {
  MethodOptions options = recipe(name);
  // With a rate that never falls parameters go ever farther, also where all is well. Here they are soon farther than
  // this, and the guard asks the source from then on: what it does at its default after many more steps.
  options.guard = "warn:displacement=1e-9";
  // Toys are unsure and see four classes: so that images count at all.
  if (options.samples == "certain") options.samples = "certain:margin=2";
  return options;
}

}  // namespace gala
