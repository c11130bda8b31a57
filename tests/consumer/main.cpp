// What a user of the installed library might write first: it must compile without the project's
// flags and precompiled header, link, and run.
#include <ATen/ATen.h>

#include <iostream>

#include "gala/gala.h"

int main() {
  auto model = gala::make_model(gala::Spec::parse("wide_resnet:depth=10,width=1,classes=4"));
  model->set_norm_mode(gala::NormMode::parse("batch"));
  gala::Adapter adapter(*model, {.loss = "entropy", .select = "gala"});
  for (int i = 0; i < 3; ++i) adapter.answer(at::rand({2, 3, 8, 8}));
  std::cout << adapter.totals().steps << " steps over " << adapter.layers().size() << " layers\n";
  return adapter.totals().steps == 3 && adapter.totals().refused == 0 ? 0 : 1;
}
