#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gala/base/registry.h"
#include "gala/loss/part.h"
#include "gala/model/model.h"
#include "gala/tensor/arena.h"
#include "gala/view/view.h"

namespace gala {

/// Another network beside the student, with parameters of its own: its answers are what the loss compares
/// with, and may be what answers. It is the same network under the same norm mode; running statistics that
/// follow the stream are its own, and what does not adapt, both share.
class Teacher : public Part {
 public:
  static constexpr std::string_view kKind = "teacher";

  /// What it works with; all of it outlives it.
  struct Site {
    Model& model;
    const ParameterArena& parameters;  ///< the student's
    std::vector<Parameter*> slots;     ///< of the model, in the arena's order
    View* view = nullptr;              ///< where there is one
    at::Tensor drift = {};             ///< where there is one: a scalar that changes in place
  };

  /// The student is the source when this is called.
  virtual void attach(const Site& site) = 0;
  /// Its answer, without gradient. `adapting`: in a step, where it may look at the images in several ways.
  virtual Output answer(const at::Tensor& images, bool adapting) = 0;
  /// Learns from the student after a step.
  virtual void follow() {}
  /// How often it looks at the images by the view, in a step.
  virtual int looks() const { return 0; }
  /// Where it looks: whether at these images, as a number on their device (int64, no dimensions; 0: it does not).
  virtual at::Tensor choice(const at::Tensor&) { return {}; }
  /// Its answer in a step, once that is known. `answer` in a step is both.
  virtual Output answer_by(const at::Tensor& images, bool /*looking*/) {
    return answer(images, true);
  }
  /// The running statistics it moves, in place.
  virtual std::vector<at::Tensor> statistics() const { return {}; }
};

std::span<const RegistryEntry<Teacher>> teacher_registry();
std::unique_ptr<Teacher> make_teacher(const Spec& spec);

/// The source model, for ever: under norm mode `batch` this is the source with batch statistics (SANTA's
/// and the "intransigent" teacher).
class SourceTeacher : public Teacher {
 public:
  using Options = NoOptions;
  explicit SourceTeacher(const Options&) {}
  /// What it remembers is called by this name.
  explicit SourceTeacher(std::string name) : name_(std::move(name)) {}
  void attach(const Site& site) override;
  Output answer(const at::Tensor& images, bool adapting) override;
  std::vector<at::Tensor> statistics() const override { return statistics_; }
  void reset() override;
  void remember(StateArchive& archive) override;

 protected:
  SourceTeacher() = default;
  /// The network's answer with these parameters in its slots, and its own running statistics, which move
  /// where `follow` is true.
  Output answer_with(const at::Tensor& values, const at::Tensor& images, bool follow) const;

  std::unique_ptr<Site> site_;
  at::Tensor source_;  ///< in the arena's layout

 private:
  std::string name_ = "teacher";
  std::vector<at::Tensor> statistics_;         ///< its own; empty where the norm mode keeps none
  std::vector<at::Tensor> source_statistics_;  ///< as they were at first
};

/// A moving mean of the student, CoTTA's (Wang et al. 2022): after each step
/// θ_t ← keep · θ_t + (1 - keep) · θ, and with a drift d the share 1 - keep is multiplied by 1 - d. Where the source model is less sure of the batch than `below` (mean of
/// its largest probabilities), the answer is the mean of the logits over `views` looks at the images;
/// else, and with views=0, that to the images as they are.
class MeanTeacher : public SourceTeacher {
 public:
  struct Options {
    double keep = 0.999;
    std::int64_t views = 0;
    double below = 0.92;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("keep", &Options::keep, "share of the teacher that stays at each step");
      option("views", &Options::views, "looks at the images, averaged (--view); 0: as they are");
      option("below", &Options::below,
             "of views: only where the source model is less sure than this");
    }
  };
  explicit MeanTeacher(const Options& options);
  void attach(const Site& site) override;
  Output answer(const at::Tensor& images, bool adapting) override;
  void follow() override;
  int looks() const override { return static_cast<int>(options_.views); }
  at::Tensor choice(const at::Tensor& images) override;
  Output answer_by(const at::Tensor& images, bool looking) override;
  void reset() override;
  void remember(StateArchive& archive) override;

 private:
  Options options_;
  at::Tensor values_;  ///< θ_t, in the arena's layout
};

}  // namespace gala
