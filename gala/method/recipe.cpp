#include "gala/method/recipe.h"

#include <string>

#include "gala/base/error.h"

namespace gala {
namespace {

using Setting = std::pair<std::string_view, std::string_view>;

// What most of them share: batch statistics, and scale and shift of the norm layers by Adam at 1e-3. The
// numbers are those of the published code for CIFAR-10-C in batches of 200.
constexpr Setting kBatch{"norm", "batch"}, kAffine{"select", "norm_affine"},
    kAdam{"optimizer", "adam:rate=0.001"}, kEntropy{"loss", "entropy"}, kEta{"samples", "eta"};
// The published code leaves out the top of a network by its names, which only ResNets have.
constexpr Setting kAffineBelowTop{"select", "norm_affine:skip=layer4.*"};
// A new Adam at every step: each number moves by the rate, whichever way its gradient points.
constexpr Setting kFreshAdam{"optimizer", "adam:rate=0.001,beta1=0,beta2=0"};
constexpr Setting kRoidLoss{"loss", "soft_likelihood_ratio+consistency"},
    kRoidSamples{"samples", "diverse_certain"},
    kRoidView{"view", "augment:padding=reflect,blur=no,noise=0"}, kPrior{"readout", "prior"};
constexpr Setting kView{"view", "augment"}, kNothing{"select", "none"}, kSource{"norm", "source"};

constexpr Setting kTent[] = {kEntropy, kAffine, kAdam, kBatch};
constexpr Setting kEtaRecipe[] = {kEntropy, kEta, kAffine, kAdam, kBatch};
constexpr Setting kEata[] = {kEntropy, kEta, kAffine, kAdam, {"penalty", "fisher"}, kBatch};
constexpr Setting kRpl[] = {{"loss", "generalised_cross_entropy"}, kAffine, kAdam, kBatch};
constexpr Setting kSar[] = {kEntropy,
                            {"samples", "certain"},
                            kAffineBelowTop,
                            {"optimizer", "sgd:rate=0.001,momentum=0.9"},
                            {"perturb", "sam"},
                            {"reset", "loss:below=0.2"},
                            kBatch};
constexpr Setting kDeyo[] = {kEntropy, {"samples", "deyo"}, kAffineBelowTop,
                             kAdam,    {"view", "patches"}, kBatch};
constexpr Setting kRoid[] = {
    kRoidLoss, kRoidSamples, kAffine, kAdam, kRoidView, {"after_step", "ensemble"}, kPrior, kBatch};
constexpr Setting kCmf[] = {
    kRoidLoss, kRoidSamples, kAffine, kAdam, kRoidView, {"after_step", "kalman"}, kPrior, kBatch};
// One setting for every stream: CMF's objective, PALM's layers at a pace of their own, statistics as far as they moved. Its numbers
// are those that plans/auto_tuning.toml and plans/auto_pace.toml found; docs/research.md says why its steps are shares.
constexpr Setting kAuto[] = {
    kRoidLoss,
    kRoidSamples,
    {"select", "paced:step=0.0006666666666666666,share=0.02,calm=yes,threshold=2,keep=0.8"},
    {"optimizer", "adam:rate=0.001,beta1=0,beta2=0"},
    kView,
    {"after_step", "kalman:gamma=0.995"},
    kPrior,
    {"norm", "adaptive:tolerance=0.06,horizon=100"}};
constexpr Setting kPalm[] = {
    {"loss", "entropy:below=0.4+consistency:form=cross_entropy,per_class=0.01,all=yes"},
    {"select", "palm"},
    {"optimizer", "adam:rate=0.0005,beta1=0,beta2=0"},
    kView,
    kBatch};
constexpr Setting kLaw[] = {
    {"loss", "entropy+consistency:form=cross_entropy,per_class=0.01,all=yes"},
    {"select", "law"},
    kFreshAdam,
    kView,
    kBatch};
constexpr Setting kRdumb[] = {kEntropy, kEta, kAffine, kAdam, {"reset", "every:steps=1000"},
                              kBatch};
constexpr Setting kCotta[] = {{"loss", "teacher_cross_entropy"},
                              {"select", "all"},
                              kAdam,
                              kView,
                              {"teacher", "mean:views=32"},
                              {"answer", "teacher"},
                              {"after_step", "restore"},
                              kBatch};
// RoTTA's normalisation; its memory of 64 images is the store's default.
constexpr Setting kRobust{"norm", "running:momentum=0.05,gradient=yes"},
    kMeanTeacher{"teacher", "mean"}, kTeacherAnswers{"answer", "teacher"};
constexpr Setting kRotta[] = {{"loss", "teacher_cross_entropy:look=view"},
                              {"samples", "age"},
                              {"store", "balanced"},
                              kAffine,
                              kAdam,
                              kView,
                              kMeanTeacher,
                              kTeacherAnswers,
                              kRobust};
constexpr Setting kPetta[] = {
    {"loss", "teacher_cross_entropy:form=symmetric,look=both+source_cross_entropy"},
    {"store", "balanced:every=0"},
    kAffine,
    kAdam,
    kView,
    kMeanTeacher,
    kTeacherAnswers,
    {"penalty", "cosine"},
    {"drift", "features"},
    kRobust};
constexpr Setting kMemo[] = {{"loss", "marginal_entropy"},
                             {"select", "all"},
                             {"optimizer", "sgd:rate=0.005"},
                             {"view", "augmix"},
                             {"norm", "blend:weight=0.1"},
                             {"episodic", "yes"},
                             {"predict", "after"}};
constexpr Setting kBnAlpha[] = {kNothing, {"norm", "blend:weight=0.1"}};
constexpr Setting kLame[] = {kNothing, {"readout", "lame"}, kSource};
constexpr Setting kT3a[] = {kNothing, {"readout", "t3a"}, kSource};
constexpr Setting kGala[] = {{"loss", "shot"}, {"select", "gala"}, kAdam, kBatch};

constexpr Recipe kRecipes[] = {
    {"auto",
     "one setting for every stream: statistics as far as they moved, steps at a pace of their own",
     kAuto},
    {"tent", "low entropy (Wang et al. 2021)", kTent},
    {"eta", "low entropy of sure and new images (Niu et al. 2022)", kEtaRecipe},
    {"eata", "ETA, and what mattered to the source is held back (Niu et al. 2022)", kEata},
    {"rpl", "robust pseudo-labels (Rusak et al. 2022)", kRpl},
    {"sar", "low entropy of sure images, at flat places (Niu et al. 2023)", kSar},
    {"deyo", "low entropy where the label hangs on the shape (Lee et al. 2024)", kDeyo},
    {"roid", "log odds of diverse and sure images, two looks, ensembling (Marsden et al. 2024)",
     kRoid},
    {"cmf", "ROID with a Kalman filter in place of ensembling (Lee & Chang 2024)", kCmf},
    {"palm", "layers that an unsure answer hardly moves (Maharana et al. 2025)", kPalm},
    {"law", "layers by their Fisher information (Park et al. 2024)", kLaw},
    {"rdumb", "ETA, back to the source every 1,000 steps (Press et al. 2023)", kRdumb},
    {"cotta", "a mean teacher over 32 looks, random restore (Wang et al. 2022)", kCotta},
    {"rotta", "a mean teacher over a balanced memory, for correlated streams (Yuan et al. 2023)",
     kRotta},
    {"petta", "RoTTA, held back by how far the features went (Hoang et al. 2024)", kPetta},
    {"memo", "one image at a time, its looks agreed, then back (Zhang et al. 2022)", kMemo},
    {"gala", "one layer at a time, with SHOT (the paper's continual setting)", kGala},
    {"bn_alpha", "a tenth of the batch's statistics (Schneider et al. 2020)", kBnAlpha},
    {"lame", "answers smoothed between neighbours (Boudiaf et al. 2022)", kLame},
    {"t3a", "prototypes in place of the head (Iwasawa & Matsuo 2021)", kT3a},
};

}  // namespace

std::span<const Recipe> recipes() {
  return kRecipes;
}

const Recipe& find_recipe(std::string_view name) {
  std::vector<std::string> known;
  for (const Recipe& recipe : kRecipes) {
    if (recipe.name == name) return recipe;
    known.emplace_back(recipe.name);
  }
  fail<ConfigError>("unknown method \"{}\"{}", name, suggestion(name, known));
}

void apply(const Recipe& recipe, MethodOptions& options) {
  for (const auto& [name, text] : recipe.options) set_option(options, name, std::string(text));
}

MethodOptions recipe(std::string_view name) {
  MethodOptions options;
  apply(find_recipe(name), options);
  return options;
}

std::vector<MethodInfo> describe_recipes() {
  std::vector<OptionInfo> known = describe_options<MethodOptions>();
  std::vector<MethodInfo> infos;
  for (const Recipe& recipe : kRecipes) {
    MethodInfo info{recipe.name, recipe.summary, {}};
    for (const auto& [name, text] : recipe.options) {
      // By a name of its own: Clang 14 lets no lambda see those above.
      const std::string_view wanted = name;
      const auto option = std::find_if(known.begin(), known.end(),
                                       [&](const OptionInfo& each) { return each.name == wanted; });
      info.options.push_back({std::string(name), option->type, std::string(text), option->help});
    }
    infos.push_back(std::move(info));
  }
  return infos;
}

}  // namespace gala
