#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <limits>
#include <utility>

#include "gala/adapt/adapter.h"

// A pass: forward, loss, backward and measure. It only queues work, so that the runner may have it captured.

namespace gala {
namespace {

/// Fills in which images are looked at again: those that are not 0 in `looked`, first, in their order.
void put_in_order(const at::Tensor& looked, Weighed& weighed) {
  const c10::NoGradGuard no_grad;
  const at::Tensor counts = looked.ne(0);
  weighed.order = counts.to(at::kByte).argsort(/*stable=*/true, /*dim=*/0, /*descending=*/true);
  weighed.number = counts.sum();
}

/// How many images are looked at again, which waits for the device.
std::int64_t room_for(const Weighed& weighed) {
  if (!weighed.order.defined()) return 0;
  return PassRunner::room_for(weighed.number.item<std::int64_t>(), weighed.order);
}

}  // namespace

void Adapter::pass(Frame& frame, PassKind kind, WorkQueue& queue) {
  const c10::AutoGradMode with_gradients(adapts(kind));
  queue.mark(1);
  frame.output = ask_student(frame, kind);
  ask_teacher(frame, adapts(kind));
  if (!adapts(kind)) return frame.facts.note(frame.logits, nullptr, {}, {}, queue);
  Weighed weighed = weigh(frame.output, /*allowed=*/{});
  if (in_pieces()) return leave_for_look(frame, std::move(weighed), queue);
  Objective aim = objective(frame, frame.output, weighed, room_for(weighed));
  queue.mark(2);
  const at::Tensor probed = probe(frame);
  differentiate(frame, aim);
  queue.mark(3);
  close_where_none_counts(aim);
  measure(frame, aim, probed, queue);
}

// Where only images that count are looked at again, the host must know their number before it can queue that look; where
// a teacher looks at the images only when it is unsure of them, the host must know whether. Such a
// pass has three pieces: up to that number; the look, the objective and its way back to the student's answer; the way
// back through the student.

/// The end of the first piece.
void Adapter::leave_for_look(Frame& frame, Weighed weighed, WorkQueue& queue) {
  Pieces& pieces = frame.pieces;
  pieces.weighed = std::move(weighed);
  pieces.probed = probe(frame);
  pieces.student = frame.output.logits.detach().requires_grad_();
  pieces.student.mutable_grad() = at::zeros_like(pieces.student);
  pieces.sums = arena_->make_buffer();
  const c10::NoGradGuard no_grad;
  pieces.gate = at::zeros({}, pieces.sums.options());
  pieces.terms = {at::zeros_like(pieces.gate), at::zeros_like(pieces.gate)};
  if (teacher_chooses()) {
    pieces.weighed.number = parts_.teacher->choice(frame.images);
    const std::int64_t images = frame.images.size(0);
    frame.taught = {
        .features = at::zeros({images, frame.output.features.size(1)}, pieces.sums.options()),
        .logits = at::zeros({images, model_.classes()}, pieces.sums.options())};
  }
  frame.facts.note_number(pieces.weighed.number, queue);
}

void Adapter::look(Frame& frame, std::int64_t room) {
  const c10::AutoGradMode with_gradients(true);
  Pieces& pieces = frame.pieces;
  if (teacher_chooses()) {
    const Output taught = parts_.teacher->answer_by(frame.images, /*looking=*/room > 0);
    frame.taught.logits.copy_(taught.logits);
    frame.taught.features.copy_(taught.features);
  }
  lend_gradients(pieces.sums);
  const Output student{.features = frame.output.features.detach(), .logits = pieces.student};
  Objective aim = objective(frame, student, pieces.weighed, room);
  aim.terms.value.backward();
  Gradients::take(*arena_);  // they stay in `sums`
  close_where_none_counts(aim);
  const c10::NoGradGuard no_grad;
  pieces.gate.copy_(aim.gate);
  pieces.terms.value.copy_(aim.terms.value);
  pieces.terms.confident.copy_(aim.terms.confident);
}

void Adapter::come_back(Frame& frame, WorkQueue& queue) {
  const c10::AutoGradMode with_gradients(true);
  const Pieces& pieces = frame.pieces;
  if (teacher_chooses()) settle_answer(frame);
  queue.mark(2);
  lend_gradients(pieces.sums);
  frame.output.logits.backward(pieces.student.grad());
  take_gradients(frame);
  queue.mark(3);
  measure(frame, {.terms = pieces.terms, .gate = pieces.gate}, pieces.probed, queue);
}

/// Has backward add to a buffer of the arena's layout.
void Adapter::lend_gradients(const at::Tensor& sums) {
  for (std::size_t i = 0; i < arena_->entries().size(); ++i) {
    arena_->leaf(i).mutable_grad() = arena_->view(sums, i);
  }
}

/// Where no image counts there is no step: the gate is closed, and `confident` says so by -1.
void Adapter::close_where_none_counts(Objective& aim) {
  const c10::NoGradGuard no_grad;
  aim.gate = aim.terms.value.detach();  // where it is not finite, no moment moves
  if (!aim.weights.defined()) return;
  const at::Tensor none = aim.weights.ne(0).any().logical_not();
  aim.gate = aim.gate.masked_fill(none, std::numeric_limits<double>::quiet_NaN());
  aim.terms.confident = aim.terms.confident.masked_fill(none, -1);
}

void Adapter::measure(Frame& frame, const Objective& aim, const at::Tensor& probed,
                      WorkQueue& queue) {
  stepper_->measure(frame.gradient_pointers, aim.gate.const_data_ptr<float>(),
                    frame.facts.table().mutable_data_ptr<double>());
  frame.facts.note(frame.logits, &aim.terms, probed, frame.output.moved, queue);
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
  if (adapting && teacher_chooses()) return;  // it is asked when its choice is known
  frame.taught = parts_.teacher->answer(frame.images, adapting);
  if (!frame.output.logits.defined()) frame.output = frame.taught;
  settle_answer(frame);
}

/// The logits that answer, where there is a teacher.
void Adapter::settle_answer(Frame& frame) const {
  if (options_.answer == AnswerWith::kTeacher) frame.logits = frame.taught.logits;
  if (options_.answer == AnswerWith::kSum) {
    frame.logits = frame.output.logits.detach() + frame.taught.logits;
  }
}

/// How much images count as far as the student's answer tells, and which must be looked at again.
Weighed Adapter::weigh(const Output& student, const at::Tensor& allowed) {
  Weighed weighed{.allowed = allowed};
  if (!parts_.samples) return weighed;
  const SampleInput input{student, allowed, ages()};
  if (parts_.samples->looks_again()) {
    put_in_order(parts_.samples->wants(input), weighed);
    return weighed;
  }
  weighed.weights = parts_.samples->weigh(input);
  if (parts_.loss->needs().view == SecondLook::kCounted) put_in_order(weighed.weights, weighed);
  return weighed;
}

at::Tensor Adapter::ages() const {
  return parts_.store ? parts_.store->ages() : at::Tensor();
}

/// The student's answer to the first `room` images in the order of `weighed`, as the view shows them: statistics
/// are made of those that must be looked at.
Output Adapter::look_again(const Frame& frame, const Weighed& weighed, std::int64_t room) {
  if (room == 0) return {{}, frame.output.logits.narrow(0, 0, 0)};
  const at::Tensor images = frame.images.index_select(0, weighed.order.narrow(0, 0, room));
  // In host memory there is room for those alone.
  const at::Tensor counted = images.is_cpu() ? at::Tensor() : weighed.number;
  return model_.forward_counted(parts_.view->look(images), counted);
}

/// What is minimised, given the student's answer.
Adapter::Objective Adapter::objective(Frame& frame, const Output& student, const Weighed& weighed,
                                      std::int64_t room) {
  LossInput input{.student = student,
                  .teacher = frame.taught.logits.defined() ? &frame.taught : nullptr,
                  .source = anchor_ ? &frame.anchored : nullptr,
                  .weights = weighed.weights};
  Weighed looked = weighed;
  if (parts_.samples && parts_.samples->looks_again()) {
    const c10::NoGradGuard no_grad;
    const Output again = look_again(frame, weighed, room);
    input.weights = parts_.samples->weigh(
        {student, weighed.allowed, ages(), &again, weighed.order.narrow(0, 0, room)});
    if (parts_.loss->needs().view == SecondLook::kCounted) {
      put_in_order(input.weights, looked);
      room = room_for(looked);
    }
  }
  Output second;
  if (!parts_.loss->needs().images) {
    input.view = &student;
  } else if (parts_.loss->needs().view == SecondLook::kCounted && looked.order.defined()) {
    input.rows = looked.order.narrow(0, 0, room);
    second = look_again(frame, looked, room);
    input.view = &second;
  } else if (parts_.loss->needs().view != SecondLook::kNone) {
    // Where gradients flow through the statistics, every look of a step moves them.
    second = model_.forward(parts_.view->look(frame.images), model_.norm_mode().gradient);
    input.view = &second;
  }
  return {.terms = parts_.loss->evaluate(input), .weights = input.weights};
}

/// Leaves the gradients of the objective in the frame. With a perturbation they are those at another
/// place, and so is the objective.
void Adapter::differentiate(Frame& frame, Objective& aim) {
  aim.terms.value.backward();
  if (parts_.perturb) {
    parts_.perturb->leave(*arena_, Gradients::take(*arena_));
    const Output there = ask_student(frame, PassKind::kAdaptAgain);
    const Weighed weighed = weigh(there, aim.weights);
    aim = objective(frame, there, weighed, room_for(weighed));
    aim.terms.value.backward();
    parts_.perturb->come_back(*arena_);
  }
  take_gradients(frame);
}

void Adapter::take_gradients(Frame& frame) {
  frame.gradients = Gradients::take(*arena_);
  if (parts_.penalty) parts_.penalty->add(*arena_, frame.gradients);
  if (probe_) probe_->see(*arena_, frame.gradients);
  frame.gradient_pointers = frame.gradients.pointers();
}

/// What the selector's probe finds in a gradient of its own, of the same forward pass.
at::Tensor Adapter::probe(const Frame& frame) {
  if (!probe_) return {};
  probe_->scalar(frame.output).backward(/*gradient=*/{}, /*retain_graph=*/true);
  return probe_->look(*arena_, Gradients::take(*arena_));
}

/// Whether only images that count are looked at again.
bool Adapter::counts_images() const {
  return parts_.samples &&
         (parts_.samples->looks_again() || parts_.loss->needs().view == SecondLook::kCounted);
}

/// Whether the teacher decides in the middle of a pass how it looks at the images. A part of the user's own may ask for
/// gradients that do not come through the logits.
bool Adapter::teacher_chooses() const {
  return parts_.teacher && parts_.teacher->looks() > 0 && !parts_.perturb && !counts_images() &&
         own_parts_.empty();
}

/// Whether the host must know something once in the middle of a pass.
bool Adapter::in_pieces() const {
  if (teacher_chooses()) return true;
  if (!parts_.samples || parts_.perturb) return false;
  return parts_.samples->looks_again() != (parts_.loss->needs().view == SecondLook::kCounted);
}

/// False where a part looks at its own values on the way.
bool Adapter::can_be_captured() const {
  const bool asks = counts_images() || (parts_.teacher && parts_.teacher->looks() > 0);
  return stepper_->can_be_captured() && (!asks || in_pieces());
}

}  // namespace gala
