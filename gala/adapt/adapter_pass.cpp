#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <limits>

#include "gala/adapt/adapter.h"

// A pass: forward, loss, backward and measure. It only queues work, so that the runner may have it captured.

namespace gala {
namespace {

/// Where no image counts there is no step: the gate is closed, and `confident` says so by -1.
void close_where_none_counts(const at::Tensor& weights, at::Tensor& gate, at::Tensor& confident) {
  const c10::NoGradGuard no_grad;
  const at::Tensor none = weights.ne(0).any().logical_not();
  gate = gate.masked_fill(none, std::numeric_limits<double>::quiet_NaN());
  confident = confident.masked_fill(none, -1);
}

/// The rows, and on a GPU some of the first one behind them: their number is another at every batch, and for
/// each number of images that it has not seen cuDNN looks for the fastest way anew.
at::Tensor padded(const at::Tensor& rows, std::int64_t most) {
  constexpr std::int64_t kSteps = 32;
  if (rows.is_cpu()) return rows;
  const std::int64_t count = std::min((rows.size(0) + kSteps - 1) / kSteps * kSteps, most);
  return at::cat({rows, rows.narrow(0, 0, 1).expand({count - rows.size(0)})});
}

}  // namespace

void Adapter::pass(Frame& frame, PassKind kind, WorkQueue& queue) {
  const c10::AutoGradMode with_gradients(adapts(kind));
  queue.mark(1);
  frame.output = ask_student(frame, kind);
  ask_teacher(frame, adapts(kind));
  if (!adapts(kind)) return frame.facts.note(frame.logits, nullptr, {}, queue);
  Objective aim = objective(frame, frame.output, /*allowed=*/{});
  queue.mark(2);
  const at::Tensor probed = probe(frame);
  differentiate(frame, aim);
  queue.mark(3);
  at::Tensor gate = aim.terms.value.detach();  // where it is not finite, no moment moves
  if (aim.weights.defined()) close_where_none_counts(aim.weights, gate, aim.terms.confident);
  stepper_->measure(frame.gradient_pointers, gate.const_data_ptr<float>(),
                    frame.facts.table().mutable_data_ptr<double>());
  frame.facts.note(frame.logits, &aim.terms, probed, queue);
  queue.mark(4);
}

/// Images as the view shows them, look by look where there are several.
at::Tensor Adapter::look_by_view(const at::Tensor& images) {
  std::vector<at::Tensor> looks;
  for (int which = 0; which < parts_.loss->needs().looks; ++which) {
    looks.push_back(parts_.view->look(images, which));
  }
  return looks.size() == 1 ? looks.front() : at::cat(looks);
}

/// The student's answer: to the images, or to what the view shows of them where nobody needs that.
Output Adapter::ask_student(Frame& frame, PassKind kind) {
  const bool statistics = kind == PassKind::kAdapt || kind == PassKind::kAnswer;
  if (adapts(kind) && !parts_.loss->needs().images) {
    return model_.forward(look_by_view(frame.images), statistics);
  }
  if (kind == PassKind::kAnswerStill && options_.answer == AnswerWith::kTeacher) return {};
  return model_.forward(frame.images, statistics);
}

/// The answers of teacher and source, and the logits that answer.
void Adapter::ask_teacher(Frame& frame, bool adapting) {
  frame.taught = frame.anchored = {};
  frame.logits = frame.output.logits;
  if (adapting && parts_.loss->needs().looks > 1) {
    const c10::NoGradGuard no_grad;
    frame.logits = frame.logits.view({-1, frame.images.size(0), model_.classes()}).mean(0);
  }
  if (adapting && anchor_) frame.anchored = anchor_->answer(frame.images, adapting);
  if (!parts_.teacher) return;
  if (!adapting && options_.answer == AnswerWith::kStudent) return;
  frame.taught = parts_.teacher->answer(frame.images, adapting);
  if (!frame.output.logits.defined()) frame.output = frame.taught;
  if (options_.answer == AnswerWith::kTeacher) frame.logits = frame.taught.logits;
  if (options_.answer == AnswerWith::kSum) {
    frame.logits = frame.output.logits.detach() + frame.taught.logits;
  }
}

/// What is minimised, given the student's answer. Images that are not allowed do not count.
Adapter::Objective Adapter::objective(Frame& frame, const Output& student,
                                      const at::Tensor& allowed) {
  const auto look_at = [&](const at::Tensor& rows) {
    if (!rows.defined()) {
      // Where gradients flow through the statistics, every look of a step moves them.
      return model_.forward(parts_.view->look(frame.images), model_.norm_mode().gradient);
    }
    const at::Tensor images = frame.images.index_select(0, padded(rows, frame.images.size(0)));
    return model_.forward_counted(parts_.view->look(images), rows.size(0));
  };
  const auto without_gradient = [&](const at::Tensor& rows) {
    const c10::NoGradGuard no_grad;
    return look_at(rows);
  };
  LossInput input{.student = student,
                  .teacher = frame.taught.logits.defined() ? &frame.taught : nullptr,
                  .source = anchor_ ? &frame.anchored : nullptr};
  if (parts_.samples) {
    const at::Tensor ages = parts_.store ? parts_.store->ages() : at::Tensor();
    input.weights = parts_.samples->weigh({student, allowed, without_gradient, ages});
  }
  const SecondLook look = parts_.loss->needs().view;
  if (!parts_.loss->needs().images) {
    input.view = &student;
    return {parts_.loss->evaluate(input), input.weights};
  }
  if (look == SecondLook::kCounted && parts_.samples)
    input.rows = input.weights.nonzero().squeeze(1);
  Output second;
  if (look != SecondLook::kNone) {
    const bool anything = !input.rows.defined() || input.rows.size(0) > 0;
    second = anything ? look_at(input.rows) : Output{{}, student.logits.narrow(0, 0, 0)};
    input.view = &second;
  }
  return {parts_.loss->evaluate(input), input.weights};
}

/// Leaves the gradients of the objective in the frame. With a perturbation they are those at another
/// place, and so is the objective.
void Adapter::differentiate(Frame& frame, Objective& aim) {
  aim.terms.value.backward();
  if (parts_.perturb) {
    parts_.perturb->leave(*arena_, Gradients::take(*arena_));
    const Output there = ask_student(frame, PassKind::kAdaptAgain);
    aim = objective(frame, there, aim.weights);
    aim.terms.value.backward();
    parts_.perturb->come_back(*arena_);
  }
  frame.gradients = Gradients::take(*arena_);
  if (parts_.penalty) parts_.penalty->add(*arena_, frame.gradients);
  frame.gradient_pointers = frame.gradients.pointers();
}

/// What the selector's probe finds in a gradient of its own, of the same forward pass.
at::Tensor Adapter::probe(const Frame& frame) {
  if (!probe_) return {};
  probe_->scalar(frame.output).backward(/*gradient=*/{}, /*retain_graph=*/true);
  return probe_->look(*arena_, Gradients::take(*arena_));
}

/// False where a part looks at its own values on the way.
bool Adapter::can_be_captured() const {
  const bool counts_images = parts_.samples && (parts_.samples->looks_again() ||
                                                parts_.loss->needs().view == SecondLook::kCounted);
  return stepper_->can_be_captured() && !counts_images &&
         !(parts_.teacher && parts_.teacher->looks() > 0);
}

}  // namespace gala
