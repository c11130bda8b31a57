// The modes as users write them; no LibTorch is needed for that.
#include "gala/base/error.h"
#include "gala/base/options.h"
#include "gala/model/norm.h"

namespace gala {
namespace {

struct BlendOptions {
  double weight = NormMode{}.weight;
  template <class Visitor>
  static void visit(Visitor&& option) {
    option("weight", &BlendOptions::weight, "share of the batch's statistics, 0 to 1");
  }
};

struct RunningOptions {
  double momentum = NormMode{}.momentum;
  bool gradient = NormMode{}.gradient;
  template <class Visitor>
  static void visit(Visitor&& option) {
    option("momentum", &RunningOptions::momentum, "share a new batch takes, 0 to 1");
    option("gradient", &RunningOptions::gradient, "gradients flow through that share (RoTTA)");
  }
};

struct AdaptiveOptions {
  double horizon = NormMode{}.horizon;
  double tolerance = NormMode{}.tolerance;
  template <class Visitor>
  static void visit(Visitor&& option) {
    option("horizon", &AdaptiveOptions::horizon,
           "images that the statistics reach back, where neighbours are not alike");
    option("tolerance", &AdaptiveOptions::tolerance,
           "distance from the source's statistics at which half of them is used");
  }
};

struct BalancedOptions {
  double momentum = 0.01;
  double common = NormMode{}.common;
  template <class Visitor>
  static void visit(Visitor&& option) {
    option("momentum", &BalancedOptions::momentum,
           "share an image takes of its class's statistics, 0 to 1");
    option("common", &BalancedOptions::common,
           "share of what moves a class that moves all of them, 0 to 1");
  }
};

/// The same as long as nobody asks for more: what was written before stays as it is.
struct MomentumOptions {
  double momentum = NormMode{}.momentum;
  template <class Visitor>
  static void visit(Visitor&& option) {
    option("momentum", &MomentumOptions::momentum, "share a new batch takes, 0 to 1");
  }
};

constexpr std::string_view kWhat = "norm mode";

double checked_share(const Spec& spec, std::string_view option, double value) {
  if (!(value >= 0 && value <= 1)) {
    fail<ConfigError>("{} {}: {} must be from 0 to 1, not {}", kWhat, spec.name, option, value);
  }
  return value;
}

}  // namespace

NormMode NormMode::parse(std::string_view text) {
  const Spec spec = Spec::parse(text);
  NormMode mode;
  if (spec.name == "source") {
    parse_options<NoOptions>(spec, kWhat);
    mode.kind = NormKind::kSource;
  } else if (spec.name == "batch") {
    parse_options<NoOptions>(spec, kWhat);
    mode.kind = NormKind::kBatch;
  } else if (spec.name == "blend") {
    mode.kind = NormKind::kBlend;
    mode.weight = checked_share(spec, "weight", parse_options<BlendOptions>(spec, kWhat).weight);
  } else if (spec.name == "running") {
    mode.kind = NormKind::kRunning;
    const auto options = parse_options<RunningOptions>(spec, kWhat);
    mode.momentum = checked_share(spec, "momentum", options.momentum);
    mode.gradient = options.gradient;
  } else if (spec.name == "adaptive") {
    mode.kind = NormKind::kAdaptive;
    const auto options = parse_options<AdaptiveOptions>(spec, kWhat);
    if (!(options.horizon >= 1)) {
      fail<ConfigError>("{} adaptive: horizon must be at least 1, not {}", kWhat, options.horizon);
    }
    if (!(options.tolerance >= 0)) {
      fail<ConfigError>("{} adaptive: tolerance must not be negative, not {}", kWhat,
                        options.tolerance);
    }
    mode.horizon = options.horizon;
    mode.tolerance = options.tolerance;
  } else if (spec.name == "balanced") {
    mode.kind = NormKind::kBalanced;
    const auto options = parse_options<BalancedOptions>(spec, kWhat);
    mode.momentum = checked_share(spec, "momentum", options.momentum);
    mode.common = checked_share(spec, "common", options.common);
    mode.gradient = true;
  } else {
    fail<ConfigError>(
        "unknown {} \"{}\"{}", kWhat, spec.name,
        suggestion(spec.name, {"source", "batch", "blend", "running", "adaptive", "balanced"}));
  }
  return mode;
}

std::string NormMode::to_string() const {
  switch (kind) {
    case NormKind::kSource:
      return "source";
    case NormKind::kBatch:
      return "batch";
    case NormKind::kBlend:
      return options_to_spec("blend", BlendOptions{weight}).to_string();
    case NormKind::kRunning:
      return (gradient ? options_to_spec("running", RunningOptions{momentum, gradient})
                       : options_to_spec("running", MomentumOptions{momentum}))
          .to_string();
    case NormKind::kAdaptive:
      return options_to_spec("adaptive", AdaptiveOptions{horizon, tolerance}).to_string();
    case NormKind::kBalanced:
      return options_to_spec("balanced", BalancedOptions{momentum, common}).to_string();
    case NormKind::kTraining:
      return options_to_spec("training", MomentumOptions{momentum}).to_string();
  }
  fail("norm mode {} does not exist", static_cast<int>(kind));
}

std::vector<MethodInfo> describe_norm_modes() {
  return {{"source", "the running statistics of the weight file, never updated", {}},
          {"batch", "the statistics of the batch at hand", {}},
          {"blend", "a mixture of batch and source statistics", describe_options<BlendOptions>()},
          {"running", "running statistics that follow the stream, once a batch",
           describe_options<RunningOptions>()},
          {"adaptive", "running statistics, and of them as much as they are far from the source's",
           describe_options<AdaptiveOptions>()},
          {"balanced", "running statistics of each class, in whose mixture all count alike (TRIBE)",
           describe_options<BalancedOptions>()}};
}

}  // namespace gala
