#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "gala/base/error.h"
#include "gala/base/random.h"
#include "gala/optim/host_workspace.h"
#include "gala/step/stepper.h"

namespace gala {

/// Tensors of random shapes and orders in memory, in a random partition into layers, with parameters and
/// gradients; without LibTorch.
struct RandomSite {
  ArenaLayout layout;
  LayerPartition layers;
  std::vector<float> values;

  explicit RandomSite(std::uint64_t seed) : seed_(seed) {
    Random random(seed, "site");
    const std::size_t tensors = 1 + random.below(9);
    for (std::size_t t = 0; t < tensors; ++t) add_tensor(random, t);
    share_out(random);
    values.assign(static_cast<std::size_t>(layout.size), 0.0F);
    for (const auto& entry : layout.entries) {
      for (std::int64_t i = 0; i < entry.range.size; ++i) {
        values[static_cast<std::size_t>(entry.range.begin + i)] =
            static_cast<float>(random.uniform(-2, 2));
      }
    }
  }

  /// Those of step `number`, the same at every call: of very different size from tensor to tensor, with a
  /// drift, and none at all (an empty one) for a tensor now and then.
  std::vector<std::vector<float>> gradients(int number) const {
    std::vector<std::vector<float>> made;
    for (std::size_t t = 0; t < layout.entries.size(); ++t) {
      Random random(seed_, "gradient", {static_cast<std::uint64_t>(number), t});
      std::vector<float> each;
      const double size = std::pow(10.0, random.uniform(-3, 1)), drift = random.uniform(-1, 1);
      const auto count = static_cast<std::size_t>(layout.entries[t].range.size);
      if (random.below(8) != 0) each.resize(count);
      std::vector<double> drawn;  // and used again and again: drawing takes longest
      for (std::size_t i = 0; i < std::min(count, std::size_t{499}); ++i) {
        drawn.push_back(size * (random.normal() + drift));
      }
      for (std::size_t i = 0; i < each.size(); ++i) {
        each[i] = static_cast<float>(drawn[i % drawn.size()]);
      }
      made.push_back(std::move(each));
    }
    return made;
  }

 private:
  void add_tensor(Random& random, std::size_t number) {
    std::vector<std::int64_t> sizes;
    if (random.below(8) == 0) {
      sizes = {40000};  // several pieces of work
    } else {
      for (std::uint64_t d = random.below(5); d > 0; --d) {
        sizes.push_back(1 + static_cast<std::int64_t>(random.below(6)));
      }
    }
    // Any order of the axes in memory, such as channels-last.
    std::vector<std::size_t> order(sizes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    random.shuffle(order);
    std::vector<std::int64_t> strides(sizes.size());
    std::int64_t stride = 1;
    for (const std::size_t axis : order) {
      strides[axis] = stride;
      stride *= sizes[axis];
    }
    layout.add(fmt::format("t{}", number), sizes, strides);
  }

  /// Every tensor into one layer, no layer empty.
  void share_out(Random& random) {
    std::vector<std::size_t> order(layout.entries.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    random.shuffle(order);
    layers.layers.resize(1 + random.below(order.size()));
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::size_t l = i < layers.size() ? i : random.below(layers.size());
      layers.layers[l].tensors.push_back(order[i]);
      layers.layers[l].count += layout.entries[order[i]].range.size;
    }
    for (std::size_t l = 0; l < layers.size(); ++l) {
      layers.layers[l].name = fmt::format("l{}", l);
      std::sort(layers.layers[l].tensors.begin(), layers.layers[l].tensors.end());
    }
  }

  std::uint64_t seed_;
};

/// For `Stepper::step`: an empty gradient is none.
inline std::vector<const float*> pointers_to(const std::vector<std::vector<float>>& gradients) {
  std::vector<const float*> pointers;
  for (const auto& each : gradients) pointers.push_back(each.empty() ? nullptr : each.data());
  return pointers;
}

inline std::unique_ptr<Stepper> make_stepper(RandomSite& site, const std::string& optimizer,
                                             std::unique_ptr<Selector> selector, int threads = 1) {
  selector->attach(site.layers);
  return std::make_unique<Stepper>(site.layout, site.values.data(), site.layers,
                                   make_optimizer(optimizer), std::move(selector),
                                   std::make_unique<HostWorkspace>(threads));
}

}  // namespace gala
