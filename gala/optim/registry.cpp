#include "gala/optim/adam.h"
#include "gala/optim/optimizer.h"
#include "gala/optim/sgd.h"

namespace gala {
namespace {

constexpr RegistryEntry<Optimizer> kOptimizers[] = {
    registry_entry<Optimizer, Adam>("adam", "Adam, as the paper's experiments use it"),
    registry_entry<Optimizer, Sgd>("sgd",
                                   "gradient descent with momentum and Nesterov's look-ahead"),
};

}  // namespace

std::span<const RegistryEntry<Optimizer>> optimizer_registry() {
  return kOptimizers;
}

std::unique_ptr<Optimizer> make_optimizer(const Spec& spec) {
  return make_from_registry<Optimizer>(optimizer_registry(), spec);
}

}  // namespace gala
