#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gala/base/registry.h"

namespace gala {

class ProcessGroup;

/// Whose statistics batch normalisation uses.
enum class NormKind {
  kSource,    ///< the running statistics of the weight file, never updated
  kBatch,     ///< those of the batch at hand
  kBlend,     ///< weight · batch + (1 - weight) · source; gradients flow through the batch part
  kAdaptive,  ///< running statistics, and of them as much as they are far from the source's
  kBalanced,  ///< running statistics of each class, in whose mixture all count alike
  kRunning,   ///< running statistics that follow the stream, once a batch; constants for the
              ///< gradient unless it is asked for
  kTraining   ///< batch statistics, running ones updated for later use; only while training
};

struct NormMode {
  NormKind kind = NormKind::kSource;
  double weight = 0.5;     ///< of `blend`
  double momentum = 0.1;   ///< of `running`, `balanced` and while training
  bool gradient = false;   ///< of `running`; always with `balanced`
  double horizon = 200;    ///< of `adaptive`
  double tolerance = 0.1;  ///< of `adaptive`
  double common = 0;       ///< of `balanced`

  /// "source", "batch", "blend:weight=0.3", "running:momentum=0.05,gradient=yes", "adaptive:tolerance=0.1",
  /// "balanced:momentum=0.01"; shares are from 0 to 1. Throws ConfigError, for `training` too: that mode is the
  /// trainer's and not a user's choice.
  static NormMode parse(std::string_view text);
  std::string to_string() const;
  /// True when the statistics change while the network answers.
  bool keeps_statistics() const {
    return kind == NormKind::kRunning || kind == NormKind::kAdaptive ||
           kind == NormKind::kBalanced || kind == NormKind::kTraining;
  }
};

/// What a norm layer must know about the pass it is in.
struct NormPass {
  NormMode mode;
  bool update_statistics = true;
  /// Only the first so many images make the batch's statistics (see batch_norm); undefined: all.
  at::Tensor counted = {};
  at::Tensor spread = {};  ///< see NormSource
  /// Where each norm layer leaves how much of other statistics than the source's it used (`adaptive`), or null.
  std::shared_ptr<std::vector<at::Tensor>> used = {};
  at::Tensor labels = {};  ///< see NormSource
  /// Who makes the batch together, each process an equal part of it, or null (see batch_norm).
  ProcessGroup* processes = nullptr;
};

/// What follows a norm layer at once, so that one pass over the maps can do it all: relu(norm(x) + added),
/// each part where it is asked for.
struct NormEnd {
  bool relu = false;
  at::Tensor added = {};  ///< of the maps' shape, or undefined
};

/// What `adaptive` and `balanced` need to know beside the running statistics.
struct NormSource {
  at::Tensor mean, variance;  ///< the source's own; undefined: the running ones are
  /// How many images of the stream are worth one that is drawn by itself (LabelSpread): float, no dimensions,
  /// on the device. Undefined: 1.
  at::Tensor spread = {};
  /// Takes the layer's w (below), or null.
  std::vector<at::Tensor>* used = nullptr;
  /// Of `balanced`: [classes, C], they change in place.
  at::Tensor class_mean = {}, class_variance = {};
  /// Of `balanced`: the class that each image seems to be of, [N], int64, on the device; -1: none.
  at::Tensor labels = {};
};

/// The modes a user may name, with their options.
std::vector<MethodInfo> describe_norm_modes();

/// Batch normalisation of [N, C, H, W] under a mode. `running_mean` and `running_var` change in
/// place where the mode keeps statistics and `update_statistics` is true:
/// running <- (1 - momentum) · running + momentum · batch, with the unbiased batch variance as in
/// PyTorch (everywhere else it is the biased one). Where a channel has a single value in the whole
/// batch there is no variance, and only `running_mean` moves. With `running`, a channel whose batch
/// statistics are not finite keeps those it had. With `gradient`, where they move, gradients flow through the
/// batch's share of them, and the variance is the biased one: the robust normalisation of RoTTA (Yuan et al. 2023).
///
/// `adaptive`: running statistics take a batch of N images in by a share a = min(1, N / (horizon · spread)) and are used
/// at once; gradients flow through that share. A layer uses w of them and 1 - w of the source's,
///   w = T / (T + tolerance),  T = mean over channels of (μ - μ_s)² / σ_s² + ½ ln²(σ² / σ_s²),
/// so that statistics that moved little, as on clean images, are hardly used, whatever their noise; w counts as a
/// constant for the gradient.
///
/// `balanced` is said with `balanced_statistics`. Where its statistics stay they are constants. `source` is for it and
/// `adaptive`.
///
/// `counted`, where defined, is a number (int64, no dimensions, on the device): `batch`, `blend` and `adaptive` take their
/// statistics from the first so many images alone.
///
/// `processes`, where given, make the batch together, each an equal part of it. It is for `training` alone, whose
/// statistics and gradients are then those of the whole batch.
at::Tensor batch_norm(const at::Tensor& input, const at::Tensor& scale, const at::Tensor& shift,
                      at::Tensor& running_mean, at::Tensor& running_var, const NormMode& mode,
                      double epsilon, bool update_statistics, const NormEnd& end = {},
                      const at::Tensor& counted = {}, const NormSource& source = {},
                      ProcessGroup* processes = nullptr);

}  // namespace gala
