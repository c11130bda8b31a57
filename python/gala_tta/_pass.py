"""A pass: forward, loss, backward and measure; everything that comes before the choice."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import torch
from torch import Tensor, nn

from gala_tta._arena import Arena
from gala_tta._device import AnyStepper, HostStepper
from gala_tta._loss_terms import COUNTED, NO_LOOK, LossInput
from gala_tta._method import Method
from gala_tta._norms import Norms
from gala_tta._parts import Output, fail
from gala_tta._probes import Probe
from gala_tta._samples import SampleInput
from gala_tta._teachers import SourceTeacher


class Kind(Enum):
    """What a pass is for."""

    ADAPT = "adapt"  # the first step on a batch: running statistics follow it
    ADAPT_AGAIN = "adapt again"
    ANSWER = "answer"
    ANSWER_STILL = "answer, statistics stay"

    @property
    def adapts(self) -> bool:
        """Whether there will be a step."""
        return self in (Kind.ADAPT, Kind.ADAPT_AGAIN)

    @property
    def moves_statistics(self) -> bool:
        """Whether running statistics follow it."""
        return self in (Kind.ADAPT, Kind.ANSWER)


@dataclass
class Frame:
    """What a pass leaves behind."""

    images: Tensor
    output: Output | None = None
    logits: Tensor = field(default_factory=lambda: torch.empty(0))
    taught: Output | None = None
    anchored: Output | None = None
    # What the host must know: the loss; how many samples took part, -1 where none counts; how far
    # statistics are from the source's.
    facts: Tensor | None = None
    gate: Tensor | None = None
    probed: Tensor | None = None
    gradients: list[Tensor | None] = field(default_factory=list)


class Network:
    """The user's module, as everything here calls it."""

    def __init__(self, module: nn.Module, head: nn.Module | None, features: bool) -> None:
        self._module = module
        self._features: Tensor | None = None
        self._hook: Any = None
        self._autocast: tuple[str, torch.dtype] | None = None
        #: Whose classes are asked for before a pass, where the mode wants them.
        self.norms: Norms | None = None
        if features:
            if head is None:
                fail(
                    "the method asks what the last linear layer sees, and the module has none "
                    "(classifier names it)"
                )
            self._hook = head.register_forward_pre_hook(self._keep)

    def _keep(self, module: nn.Module, given: tuple[Any, ...]) -> None:
        self._features = given[0]

    def __call__(self, images: Tensor) -> Output:
        """Return float32 logits [N, C], and features where they are asked for."""
        if self.norms is None or not self.norms.asks_classes:
            return self._ask(images)
        with torch.no_grad(), self.norms.still():
            seen = self._ask(images)
        with self.norms.knowing(seen.logits):
            return self._ask(images)

    def _ask(self, images: Tensor) -> Output:
        if self._autocast is None:
            given = self._module(images)
        else:
            kind, dtype = self._autocast
            # No cache of rounded weights: a step moves them, and a captured graph would miss that.
            with torch.autocast(kind, dtype=dtype, cache_enabled=False):
                given = self._module(images)
        logits = _logits_of(given)
        if logits.dim() != 2 or logits.shape[0] != images.shape[0] or logits.shape[1] < 2:
            fail(
                f"the module must give logits [N, C] for {images.shape[0]} images, with at least "
                f"two classes, not {list(logits.shape)}"
            )
        features, self._features = self._features, None
        if features is not None:
            features = features.flatten(1).float()
        return Output(logits.float(), features)

    def note_autocast(self, kind: str) -> None:
        """Run the module as the caller has it, wherever in a pass that is."""
        enabled = torch.is_autocast_enabled(kind)
        self._autocast = (kind, torch.get_autocast_dtype(kind)) if enabled else None

    def release(self) -> None:
        """Leave no hook behind."""
        if self._hook is not None:
            self._hook.remove()


def _logits_of(given: Any) -> Tensor:
    for found in (given, getattr(given, "logits", None)):
        if isinstance(found, Tensor):
            return found
    if isinstance(given, dict) and isinstance(given.get("logits"), Tensor):
        logits: Tensor = given["logits"]
        return logits
    if isinstance(given, tuple | list) and given and isinstance(given[0], Tensor):
        return given[0]
    fail(f"the module must give logits, not {type(given).__name__}")


class Passes:
    """Runs passes over batches with the parts of a method."""

    def __init__(
        self,
        network: Network,
        arena: Arena,
        norms: Norms,
        method: Method,
        stepper: AnyStepper,
        probe: Probe | None,
        anchor: SourceTeacher | None,
    ) -> None:
        self.network, self.arena, self.norms = network, arena, norms
        self._method, self._stepper = method, stepper
        self._probe, self._anchor = probe, anchor
        self._answer = method.options["answer"]

    def run(self, images: Tensor, kind: Kind) -> Frame:
        """Make a pass; with a step in view its sums are measured."""
        frame = Frame(images)
        self.network.note_autocast(images.device.type)
        try:
            with torch.set_grad_enabled(kind.adapts):
                self._fill(frame, kind)
        except BaseException:
            self.arena.drop_gradients()
            raise
        return frame

    def _fill(self, frame: Frame, kind: Kind) -> None:
        with self.norms.listening() as used:
            frame.output = self._ask_student(frame.images, kind)
        self._ask_teacher(frame, kind)
        if not kind.adapts:
            return
        assert frame.output is not None
        # Losses are float32, and nothing of backward belongs to autocast.
        with torch.autocast(frame.images.device.type, enabled=False):
            value, confident, weights = self._objective(frame, frame.output, None)
            if self._probe is not None:
                self._probe.scalar(frame.output.logits).backward(retain_graph=True)  # type: ignore[no-untyped-call]
                frame.probed = self._probe.look(self.arena, self.arena.take_gradients())
            value, confident, weights = self._differentiate(frame, value, confident, weights)
        with torch.no_grad():
            gate = value.detach().float().reshape(1)
            far = torch.stack(used).mean().float() if used else torch.ones_like(gate[0])
            facts = torch.stack([gate[0], confident.detach().float(), far])
            if weights is not None:
                # Where no image counts there is no step: the gate is closed.
                none = weights.ne(0).any().logical_not()
                gate = gate.masked_fill(none, float("nan"))
                facts[1] = facts[1].masked_fill(none, -1.0)
            frame.gate, frame.facts = gate, facts
        if isinstance(self._stepper, HostStepper):
            self._stepper.take(frame.gradients, gate)
            return
        self._stepper.measure(
            [0 if each is None else each.data_ptr() for each in frame.gradients], gate.data_ptr()
        )

    def _ask_student(self, images: Tensor, kind: Kind) -> Output | None:
        needs = self._method.loss.needs
        with self.norms.still(not kind.moves_statistics):
            if kind.adapts and not needs.images:
                assert self._method.view is not None
                looks = [self._method.view.look(images, which) for which in range(needs.looks)]
                return self.network(looks[0] if len(looks) == 1 else torch.cat(looks))
            if kind is Kind.ANSWER_STILL and self._answer == "teacher":
                return None
            return self.network(images)

    def _ask_teacher(self, frame: Frame, kind: Kind) -> None:
        if frame.output is not None:
            frame.logits = frame.output.logits
            if kind.adapts and self._method.loss.needs.looks > 1:
                shape = (-1, frame.images.shape[0], frame.logits.shape[1])
                frame.logits = frame.logits.detach().view(shape).mean(0)
        if kind.adapts and self._anchor is not None:
            frame.anchored = self._anchor.answer(frame.images, True)
        teacher = self._method.teacher
        if teacher is None or (not kind.adapts and self._answer == "student"):
            return
        frame.taught = teacher.answer(frame.images, kind.adapts)
        if frame.output is None:
            frame.output = frame.taught
        if self._answer == "teacher":
            frame.logits = frame.taught.logits
        elif self._answer == "sum":
            frame.logits = frame.output.logits.detach() + frame.taught.logits

    def _look_at(self, images: Tensor, rows: Tensor | None) -> Output:
        assert self._method.view is not None
        if rows is None:
            # Where gradients flow through the statistics, every look of a step moves them.
            with self.norms.still(not self.norms.mode.gradient):
                return self.network(self._method.view.look(images))
        with self.norms.still():
            return self.network(self._method.view.look(images.index_select(0, rows)))

    def _objective(
        self, frame: Frame, student: Output, allowed: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return what is minimised, how many took part, and the weights of the images."""
        method = self._method
        given = LossInput(student, frame.taught, frame.anchored)
        if method.samples is not None:

            def look_again(rows: Tensor) -> Output:
                return self._look_at(frame.images, rows)

            ages = method.store.ages() if method.store is not None else None
            with torch.no_grad():
                given.weights = method.samples.weigh(
                    SampleInput(student, allowed, look_again, ages)
                )
        needs = method.loss.needs
        if not needs.images:
            given.view = student
        elif needs.view != NO_LOOK:
            if needs.view == COUNTED and given.weights is not None:
                given.rows = given.weights.nonzero().squeeze(1)
            if given.rows is None or given.rows.shape[0] > 0:
                given.view = self._look_at(frame.images, given.rows)
            else:
                given.view = Output(student.logits[:0])
        value, confident = method.loss.evaluate(given)
        return value, confident, given.weights

    def _differentiate(
        self, frame: Frame, value: Tensor, confident: Tensor, weights: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Leave the gradients in the frame; with a perturbation they are those at another place."""
        method, arena = self._method, self.arena
        if not value.requires_grad:
            fail(
                "the module's answer has no gradient, so nothing can adapt "
                "(torch.no_grad or detach inside its forward?)"
            )
        value.backward()  # type: ignore[no-untyped-call]
        if method.perturb is not None:
            method.perturb.leave(arena, arena.take_gradients())
            try:
                there = self._ask_student(frame.images, Kind.ADAPT_AGAIN)
                assert there is not None
                value, confident, weights = self._objective(frame, there, weights)
                value.backward()  # type: ignore[no-untyped-call]
            finally:
                method.perturb.come_back(arena)
        frame.gradients = arena.take_gradients()
        if method.penalty is not None:
            method.penalty.add(arena, frame.gradients)
        if self._probe is not None:
            self._probe.see(arena, frame.gradients)
        return value, confident, weights

    def can_be_captured(self) -> str:
        """Return why a captured graph cannot hold a pass; nothing where it can."""
        method = self._method
        if not self._stepper.can_be_captured:
            return "steps are made on the host, or the optimizer changes from one to the next"
        if method.samples is not None and (
            method.samples.looks_again or method.loss.needs.view == COUNTED
        ):
            return "only the images that count are looked at again, and their number changes"
        if method.teacher is not None and method.teacher.looks:
            return "the teacher looks at the images only where the source model is unsure"
        return method.view.uncaptured if method.view is not None else ""
