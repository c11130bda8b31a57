#pragma once
// A network and pictures small enough to train in a moment.
#include <filesystem>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "gala/base/random.h"
#include "gala/data/npy.h"
#include "gala/model/weights.h"
#include "gala/train/setup.h"
#include "gala/train/trainer.h"

namespace gala::test {

/// Small pictures of three classes that differ in brightness, in memory of the test alone.
inline void write_pictures(const std::filesystem::path& folder, std::int64_t count) {
  Random random(3, "pictures");
  std::vector<std::uint8_t> pixels;
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    labels.push_back(i % 3);
    for (int p = 0; p < 32 * 32 * 3; ++p) {
      pixels.push_back(
          static_cast<std::uint8_t>(60 * (i % 3) + static_cast<std::int64_t>(random.below(60))));
    }
  }
  const std::int64_t shape[] = {count, 32, 32, 3};
  write_npy(folder / "images.npy", "|u1", shape, [&](std::ostream& out) {
    out.write(reinterpret_cast<const char*>(pixels.data()),
              static_cast<std::streamsize>(pixels.size()));
  });
  write_npy(folder / "labels.npy", "<i8", std::span(shape, 1), [&](std::ostream& out) {
    out.write(reinterpret_cast<const char*>(labels.data()),
              static_cast<std::streamsize>(labels.size() * 8));
  });
}

inline TrainPlan picture_plan(const std::filesystem::path& folder) {
  TrainPlan plan;
  plan.model.network = "wide_resnet:depth=10,width=1,classes=3";
  plan.data.train =
      fmt::format("arrays:images=\"{0}/images.npy\",labels=\"{0}/labels.npy\"", folder.string());
  plan.data.evaluation = plan.data.train;
  plan.data.augmentation = Augmentation::kCropFlip;
  plan.train.epochs = 2;
  plan.train.batch_size = 8;
  plan.train.optimizer = "sgd:rate=0.05,momentum=0.9,nesterov=yes,weight_decay=0.0005";
  plan.train.warmup_epochs = 0.5;
  plan.train.seed = 5;
  return plan;
}

/// A plan that runs.
struct PlanRun {
  TrainPlan plan;
  Training training;
  std::unique_ptr<Trainer> trainer;

  explicit PlanRun(const TrainPlan& a_plan, int threads = 1, ProcessGroup* processes = nullptr)
      : plan(a_plan) {
    Problems problems;
    training = open_training(plan, problems);
    problems.throw_if_any("plan");
    trainer = std::make_unique<Trainer>(*training.model, make_curriculum(training, plan), plan,
                                        threads, processes);
  }
  std::string finish() {
    while (trainer->step()) {
    }
    return weight_hash(*training.model);
  }
};

}  // namespace gala::test
