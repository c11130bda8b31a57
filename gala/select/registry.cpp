#include "gala/select/all.h"
#include "gala/select/auto_rgn.h"
#include "gala/select/auto_snr.h"
#include "gala/select/bandit.h"
#include "gala/select/control.h"
#include "gala/select/fixed.h"
#include "gala/select/gala.h"
#include "gala/select/none.h"
#include "gala/select/norm_affine.h"
#include "gala/select/probed.h"
#include "gala/select/random.h"
#include "gala/select/relative.h"
#include "gala/select/selector.h"
#include "gala/select/trend.h"

namespace gala {
namespace {

using Entry = RegistryEntry<Selector, std::uint64_t>;

template <class Method>
constexpr Entry line(std::string_view name, std::string_view summary) {
  return registry_entry<Selector, Method, std::uint64_t>(name, summary);
}

constexpr Entry kSelectors[] = {
    line<GalaSelector>("gala",
                       "the layer whose update points along its recent displacement; with a small "
                       "opening nearly a rotation over the layers"),
    line<AllSelector>("all", "every layer at every step"),
    line<NoneSelector>("none", "nothing moves: the source model, or batch statistics alone"),
    line<FixedSelector>("fixed", "the same named layers at every step"),
    line<RandomSelector>("random", "one layer a step, drawn evenly"),
    line<ControlSelector>(
        "control",
        "another layer in place of GALA's, as often and as far: what is its criterion worth?"),
    line<AutoRgnSelector>("auto_rgn", "layers by their relative gradient norm"),
    line<AutoSnrSelector>("auto_snr", "layers whose gradient has a high signal-to-noise ratio"),
    line<NormAffineSelector>("norm_affine", "scale and shift of norm layers (with entropy: Tent)"),
    line<PalmSelector>("palm",
                       "layers that an unsure answer hardly moves, by how unsteady they are"),
    line<PacedSelector>("paced", "palm's layers, whose steps neither rate nor batch size sets"),
    line<TrendSelector>("trend", "layers whose updates keep their direction, moved or not"),
    line<RelativeSelector>("relative", "every layer, by at most a share of its own weights"),
    line<BanditSelector>("bandit", "the layer after whose moves the loss fell most so far"),
    line<LawSelector>("law", "layers by their Fisher information so far"),
};

}  // namespace

std::span<const Entry> selector_registry() {
  return kSelectors;
}

std::unique_ptr<Selector> make_selector(const Spec& spec, std::uint64_t seed) {
  return make_from_registry<Selector, std::uint64_t>(selector_registry(), spec, seed);
}

}  // namespace gala
