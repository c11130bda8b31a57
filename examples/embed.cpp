// Adaptation inside a program of your own: images in memory in, answers out, no files.
#include <ATen/ATen.h>

#include <iostream>

#include "gala/gala.h"

int main() {
  auto model = gala::make_model("wide_resnet:depth=10,width=1,classes=10");
  // gala::load_weights(*model, "source.safetensors");    your trained weights

  gala::Adapter adapter(*model,
                        {.loss = "shot", .select = "gala", .norm = "batch", .guard = "rollback"});
  for (int frame = 0; frame < 5; ++frame) {
    const at::Tensor images = at::rand({8, 3, 32, 32});  // your camera: [N, 3, H, W], preprocessed
    const gala::Answer answer = adapter.answer(images);
    std::cout << "batch " << frame << ": class " << answer.predictions[0];
    for (const std::size_t layer : answer.steps[0].selected()) {
      if (answer.steps[0].layers[layer].weight == 1) {
        std::cout << ", moved " << adapter.layers()[layer].name;
      }
    }
    std::cout << '\n';
  }
  adapter.reset();  // back to the source model, exactly
}
