#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "gala/base/registry.h"
#include "gala/loss/part.h"

namespace gala {

/// Keeps images of the stream, so that steps are made on other images than the batch at hand, or answers
/// given among others. It comes in twice: before a batch is answered (`show`) and after (`take`).
class Store : public Part {
 public:
  static constexpr std::string_view kKind = "store";

  /// What the network is shown when a batch is to be answered.
  struct Shown {
    at::Tensor images;
    at::Tensor rows =
        {};              ///< where the batch is among them, long [N]; undefined: they are the batch
    bool adapt = false;  ///< whether this pass is a step
    bool statistics = true;  ///< whether running statistics follow it
  };
  /// Makes a step on images [M, 3, H, W].
  using Step = std::function<void(const at::Tensor& images)>;

  virtual void attach(at::Device device, std::int64_t classes) = 0;
  virtual Shown show(const at::Tensor& images) { return {.images = images}; }
  /// `logits` [N, C] answered the batch; they lie on the host, the images on the device. Calls `step`
  /// whenever it is time; a step may make the store forget everything (reset).
  virtual void take(const at::Tensor& /*images*/, const at::Tensor& /*logits*/,
                    const Step& /*step*/) {}
  /// How long ago each image of the step came, in lengths of the store: [M] on the device, in a place that
  /// stays, since captured passes read it. Undefined where nobody can tell.
  virtual at::Tensor ages() const { return {}; }
  /// True where steps are made on images that were answered before: then the pass of a step answers nobody.
  virtual bool answers_first() const { return false; }
};

std::span<const RegistryEntry<Store>> store_registry();
std::unique_ptr<Store> make_store(const Spec& spec);

}  // namespace gala
