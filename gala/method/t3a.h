#pragma once
#include <cstdint>

#include "gala/method/readout.h"

namespace gala {

/// T3A (Iwasawa & Matsuo 2021): prototypes in place of the head. Each class keeps the features of the
/// `keep` images of least entropy that were given its label, its row of the head's weights among
/// them at first; a logit is the feature times the normalised sum of the normalised features of a
/// class.
class T3aReadout : public Readout {
 public:
  struct Options {
    std::int64_t keep = 100;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("keep", &Options::keep, "features per class; 0: all of them");
    }
  };
  explicit T3aReadout(const Options& options);
  void attach(const Model& model) override;
  at::Tensor correct(const Output& output) override;
  void reset() override;
  void remember(StateArchive& archive) override;

 private:
  void forget_unsure(std::int64_t classes);

  Options options_;
  at::Tensor head_weight_, head_bias_;
  at::Tensor features_;  ///< [M, F]
  at::Tensor labels_;    ///< long [M]
  at::Tensor entropy_;   ///< [M]
};

}  // namespace gala
