#pragma once
#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gala/base/options.h"
#include "gala/layer/layer.h"

namespace gala {

/// Which forward pass answers.
enum class PredictWith {
  kAdapting,  ///< the one the loss came from: the parameters before the (last) update
  kAfter      ///< another one, with the parameters after it
};
constexpr std::array<std::string_view, 2> enum_names(PredictWith) {
  return {"adapting", "after"};
}

/// Whether the last linear layer adapts.
enum class HeadRule {
  kAuto,  ///< as the loss's protocol has it
  kAdapt,
  kFreeze
};
constexpr std::array<std::string_view, 3> enum_names(HeadRule) {
  return {"auto", "adapt", "freeze"};
}

/// Who answers.
enum class AnswerWith {
  kStudent,  ///< the network that adapts
  kTeacher,
  kSum  ///< of the logits of both
};
constexpr std::array<std::string_view, 3> enum_names(AnswerWith) {
  return {"student", "teacher", "sum"};
}

/// How to adapt. This is the only description there is: the flags of the command line, the keys of
/// plans, the specs and keys of records, saved states and help all visit it. A new option is a member and
/// a line of `visit` here, and a name in kAddedLater (method_options.cpp). Loss, selector, optimizer, norm mode, guard and the
/// parts named after them are specs.
struct MethodOptions {
  std::string loss = "pseudo_label";
  std::string samples = "none";
  std::string store = "none";
  std::string select = "gala";
  std::string optimizer = "adam";
  std::string view = "none";
  std::string teacher = "none";
  AnswerWith answer = AnswerWith::kStudent;
  std::string perturb = "none";
  std::string penalty = "none";
  std::string drift = "none";
  std::string source_data = {};  ///< for parts that learn from the source; empty: none
  std::string after_step = "none";
  std::string reset = "none";
  std::string readout = "none";
  std::string norm = {};  ///< empty: the mode the model is in
  std::optional<Granularity> partition = {};
  HeadRule head = HeadRule::kAuto;
  std::vector<std::string> include = {};
  std::vector<std::string> exclude = {};
  std::int64_t inner_steps = 1;
  std::int64_t adapt_every = 1;
  bool episodic = false;
  PredictWith predict = PredictWith::kAdapting;
  bool shadow = false;
  std::string guard = "warn";
  std::int64_t seed = 0;

  template <class Visitor>
  static void visit(Visitor&& option) {
    option("loss", &MethodOptions::loss,
           "unsupervised loss; several with + between them: their sum");
    option("samples", &MethodOptions::samples,
           "how much each image counts in the loss; none: all alike");
    option("store", &MethodOptions::store,
           "images of the stream that are kept; none: only the batch at hand");
    option("select", &MethodOptions::select, "which layers move");
    option("optimizer", &MethodOptions::optimizer, "how they move");
    option("view", &MethodOptions::view, "how images are looked at a second time");
    option("teacher", &MethodOptions::teacher, "another network, for losses that compare with one");
    option("answer", &MethodOptions::answer, "who answers: the student, the teacher, or both");
    option("perturb", &MethodOptions::perturb, "where the gradient is taken; none: where we are");
    option("penalty", &MethodOptions::penalty, "what holds parameters back");
    option("drift", &MethodOptions::drift,
           "how far the stream went, which scales the penalty and slows the teacher");
    option("source_data", &MethodOptions::source_data,
           "images of the source, for a penalty or drift that learns from them");
    option("after_step", &MethodOptions::after_step,
           "what is done after every step; several with + between them");
    option("reset", &MethodOptions::reset, "when to go back to the source");
    option("readout", &MethodOptions::readout, "how logits become answers; none: they are");
    option("norm", &MethodOptions::norm,
           "statistics of norm layers: source, batch, blend, running, adaptive or balanced");
    option("partition", &MethodOptions::partition,
           "what a layer is: tensor, module or block; auto: the selector's own");
    option("head", &MethodOptions::head, "adapt or freeze the classifier; auto: the loss's own");
    option("include", &MethodOptions::include, "only parameters that fit one of these patterns");
    option("exclude", &MethodOptions::exclude, "no parameters that fit one of these patterns");
    option("inner_steps", &MethodOptions::inner_steps, "optimizer steps on each batch");
    option("adapt_every", &MethodOptions::adapt_every, "adapt on every N-th batch, answer all");
    option("episodic", &MethodOptions::episodic, "go back to the source before every batch");
    option("predict", &MethodOptions::predict,
           "answer with the adapting forward pass, or with another one after the update");
    option("shadow", &MethodOptions::shadow,
           "adapt beside: answers come from the source model, and how many would differ is told");
    option("guard", &MethodOptions::guard,
           "what to do about collapse: off, warn, stop or rollback");
    option("seed", &MethodOptions::seed, "for everything that is drawn");
  }

  bool operator==(const MethodOptions&) const = default;
};

/// Every option under its name; enums as texts.
nlohmann::ordered_json to_json(const MethodOptions& options);

/// Adds the same to `json`, but what came after the first records were written (`shadow`) is left out
/// where it has its default, so that their keys stay what they are.
void add_to_record(const MethodOptions& options, nlohmann::ordered_json& json);

/// Reads what `add_to_record` wrote. Throws Error, naming the option, when one is missing or is no value
/// of its type.
MethodOptions method_from_json(const nlohmann::json& json);

/// Sets the option `name` from its text; false when there is no such option. Throws ConfigError when
/// the text is no value of it.
bool set_option(MethodOptions& options, std::string_view name, const std::string& text);

}  // namespace gala
