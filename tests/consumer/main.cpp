// What a user of the installed library might write first: it must compile without the project's
// flags and precompiled header, link, and run.
#include <ATen/ATen.h>

#include <iostream>

#include "gala/base/random.h"
#include "gala/base/spec.h"

int main() {
  const gala::Spec spec = gala::Spec::parse("gala:threshold=0.75,window=20");
  gala::Random random(1, "consumer");
  const double value = random.uniform();
  const double sum = at::ones({2, 3}).sum().item<double>();
  std::cout << spec.to_string() << ' ' << value << ' ' << sum << '\n';
  return spec.options.size() == 2 && value >= 0 && value < 1 && sum == 6 ? 0 : 1;
}
