#include <vector>

#include "gala/base/error.h"
#include "gala/loss/loss.h"
#include "gala/loss/sum.h"

namespace gala {

std::unique_ptr<Loss> make_loss(std::string_view text) {
  std::vector<std::unique_ptr<Loss>> terms;
  for (const Spec& spec : parse_specs(text)) {
    terms.push_back(make_from_registry<Loss>(loss_registry(), spec));
  }
  if (terms.empty()) fail<ConfigError>("a method needs a loss; with --select none nothing moves");
  if (terms.size() == 1) return std::move(terms.front());
  for (const auto& term : terms) {
    if (term->needs().looks > 1) {
      fail<ConfigError>(
          "a loss that looks at every image several times stands alone, not in \"{}\"", text);
    }
  }
  return std::make_unique<SumLoss>(std::move(terms));
}

}  // namespace gala
