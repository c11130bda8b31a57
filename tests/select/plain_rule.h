#pragma once
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gala/base/random.h"
#include "gala/optim/host_workspace.h"
#include "gala/select/selector.h"
#include "tests/step/random_site.h"

namespace gala {

using Numbers = std::vector<double>;

/// What a selector sees of a step: random vectors, of which the sums are made, and gradients.
struct Scene {
  RandomSite site;
  Numbers probed;
  std::vector<Numbers> update, shift;  ///< by layer
  std::vector<LayerSums> sums;
  std::vector<std::vector<float>> gradients;
  std::vector<const float*> pointers;
  StepClock clock;
  double rate = 1e-3, images = 0, moved = 1, loss = 0;
  HostWorkspace workspace{1};

  explicit Scene(std::uint64_t seed) : site(seed) {}

  static double dot(const Numbers& a, const Numbers& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  }
  static Numbers draw(Random& random, double size) {
    Numbers values(4);
    for (double& each : values) each = size * random.normal();
    return values;
  }

  /// Layers of every kind: that would not move, have not moved, turn back, or are like the one before.
  void begin_step(Random& random, int number) {
    const std::size_t count = site.layers.size();
    update.assign(count, {});
    shift.assign(count, {});
    sums.clear();
    probed.clear();
    for (std::size_t l = 0; l < count; ++l) {
      update[l] = draw(random, std::pow(10.0, random.uniform(-3, 3)));
      shift[l] = draw(random, std::sqrt(dot(update[l], update[l])) * random.uniform(0, 2));
      double value_sq = std::pow(10.0, random.uniform(-3, 3));
      switch (random.below(8)) {
        case 0:
          update[l].assign(4, 0.0);
          break;
        case 1:
          shift[l].assign(4, 0.0);
          break;
        case 2:
          value_sq = 0;
          break;
        case 3:
          for (std::size_t i = 0; i < 4; ++i) shift[l][i] = -3 * update[l][i];
          break;
        case 4:
          if (l > 0) update[l] = update[l - 1], shift[l] = shift[l - 1];
          break;
        default:
          break;
      }
      const double gradient_sq = random.below(6) == 0 ? 0 : std::pow(10.0, random.uniform(-6, 6));
      sums.push_back({dot(update[l], update[l]), dot(update[l], shift[l]), dot(shift[l], shift[l]),
                      gradient_sq, value_sq, site.layers[l].count});
      probed.push_back(random.uniform(-1, 2));
    }
    gradients = site.gradients(number);
    pointers = pointers_to(gradients);
  }
  Proposal proposal() {
    return {site.layers, sums,   clock,  rate,  site.layout, pointers,
            workspace,   probed, images, moved, loss};
  }
  /// Eq. 5 as it is printed, from the vectors themselves.
  double cosine_of(std::size_t l) const {
    Numbers sum = update[l];
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += shift[l][i];
    const double length = std::sqrt(dot(update[l], update[l]) * dot(sum, sum));
    return length > 0 ? dot(update[l], sum) / length : 0;
  }
};

/// A rule in its own words. None where two layers are too near to tell apart in double.
class PlainRule {
 public:
  virtual ~PlainRule() = default;
  virtual std::string spec() const = 0;
  virtual std::int64_t window() const { return 0; }
  virtual std::optional<Numbers> choose(const Scene& scene) = 0;
};

/// Makes a selector's rule with random options; `seed` is the selector's.
using RuleMaker = std::unique_ptr<PlainRule> (*)(Random& random, std::uint64_t seed);
/// Of every selector, by its name.
const std::map<std::string_view, RuleMaker>& plain_rules();

}  // namespace gala
