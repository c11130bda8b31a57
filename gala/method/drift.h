#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "gala/base/registry.h"
#include "gala/loss/part.h"
#include "gala/method/penalty.h"
#include "gala/model/model.h"

namespace gala {

/// How far what the network sees went from what the source saw, without labels, from 0 to 1. Where there is one,
/// penalties count by it and a teacher follows by the rest: the farther, the more is held back.
class Drift : public Part {
 public:
  static constexpr std::string_view kKind = "drift";

  /// Learns the source from its images, once, before anything moves.
  virtual void learn(Model& model, const SourceImages& images) = 0;
  /// Takes in the answer to a batch. Only queues work.
  virtual void observe(const Output& answered) = 0;
  /// A scalar on the device, in a place that stays: captured passes read it.
  virtual const at::Tensor& value() const = 0;
};

std::span<const RegistryEntry<Drift>> drift_registry();
std::unique_ptr<Drift> make_drift(const Spec& spec);

/// That of PeTTA (Hoang et al. 2024). Mean and variance of the source's features are learned class by class,
/// with the source model's own answers for labels; a moving mean of each class follows the stream's. The drift
/// is 1 - exp(-m), with m the mean of (moving mean - mean)² / (variance + 1e-6) over the features of the
/// classes in the batch, before the batch is taken in. Classes with fewer than two images of
/// the source are left out.
class FeatureDrift : public Drift {
 public:
  struct Options {
    double keep = 0.95;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("keep", &Options::keep, "share of a class's moving mean that stays at each batch");
    }
  };
  explicit FeatureDrift(const Options& options);
  void learn(Model& model, const SourceImages& images) override;
  void observe(const Output& answered) override;
  const at::Tensor& value() const override { return value_; }
  void reset() override;
  void remember(StateArchive& archive) override;

 private:
  Options options_;
  at::Tensor mean_, variance_;  ///< of the source, [classes, features]
  at::Tensor known_;            ///< [classes], 1 where the source showed enough
  at::Tensor moving_;           ///< [classes, features]
  at::Tensor value_;            ///< scalar
};

}  // namespace gala
