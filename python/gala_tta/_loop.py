"""The method, on one page.

For each batch: forward, loss, backward, measure every layer's update, let the selector choose, move
what it chose, answer.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gala_tta import _core
from gala_tta._arena import Arena
from gala_tta._device import AnyStepper
from gala_tta._method import Method
from gala_tta._norms import Norms
from gala_tta._parts import Output, Part
from gala_tta._pass import Frame, Kind, Network
from gala_tta._records import Last, Totals
from gala_tta._runner import Runner
from gala_tta._watch import Seen, Snapshot, Watch, look_at_rows


class Loop:
    """What an adapter does with a batch; `Adapter` is what stands around it."""

    totals: Totals
    _options: dict[str, Any]
    _method: Method
    _layers: list[tuple[str, list[int]]]
    _network: Network | None
    _norms: Norms | None
    _spread: _core.LabelSpread | None
    _arena: Arena | None
    _parts: dict[str, Part]
    _stepper: AnyStepper
    _runner: Runner
    _watch: Watch
    _stopped: bool
    _classes: int

    def _check_open(self) -> None:
        raise NotImplementedError

    def _answer(self, images: Tensor) -> tuple[Last, _core.BatchHealth, Seen]:
        self.totals.batches += 1
        if self._options["episodic"]:
            self.restart()
        store, steps = self._method.store, list[_core.StepRecord]()
        shown = store.show(images) if store is not None else None
        asked = shown.images if shown else images
        if self._adapts_now() and (shown is None or shown.adapt):
            frame = self._adapt_to(asked, steps)
        else:
            still = shown is not None and not shown.statistics
            frame = self._runner.run(asked, Kind.ANSWER_STILL if still else Kind.ANSWER)
        raw = frame.logits.detach()
        seen = Seen(asked, raw)
        logits = self._predict(frame, steps)
        if self._method.drift is not None and self._adapts_now():
            observed = frame.output if frame.taught is None else frame.taught
            assert observed is not None
            self._method.drift.observe(observed)
        if shown is not None and shown.rows is not None:
            asked, logits = asked[shown.rows], logits[shown.rows]
        health = look_at_rows(logits)
        last = Last(logits, health.predictions, [name for name, _ in self._layers], steps)
        self._know_classes(logits.shape[1])
        if self._spread is not None:
            assert self._norms is not None
            self._spread.take(health.predictions)
            self._norms.spread.fill_(self._spread.value)
        if health.not_finite > 0:
            self._watch.answer_again(last, asked)
            health.not_finite, health.broken = len(last.from_source), len(last.unanswered)
        if self._options["shadow"]:
            last.adapted, last.logits = last.logits, self._watch.ask_source(asked)
            last.predictions = look_at_rows(last.logits).predictions
            last.from_source = []
            last.unanswered = [i for i, each in enumerate(last.predictions) if each < 0]
        if store is not None and self._adapts_now():
            store.take(asked, raw.cpu(), lambda kept: (self._adapt_to(kept, steps), None)[1])
        self.totals.from_source += len(last.from_source)
        self.totals.unanswered += len(last.unanswered)
        return last, health, seen

    def _adapt_to(self, images: Tensor, steps: list[_core.StepRecord]) -> Frame:
        frame = self._adapt_once(images, Kind.ADAPT, steps)
        for _ in range(1, self._options["inner_steps"]):
            frame = self._adapt_once(images, Kind.ADAPT_AGAIN, steps)
        return frame

    def _adapt_once(self, images: Tensor, kind: Kind, steps: list[_core.StepRecord]) -> Frame:
        method = self._method
        self._stepper.begin()
        if method.view is not None:
            looks = method.teacher.looks if method.teacher is not None else 0
            method.view.draw(
                self._options["seed"], self.totals.steps + 1, max(looks, method.loss.needs.looks)
            )
        assert self._norms is not None
        statistics = self._norms.copies()
        try:
            frame = self._runner.run(images, kind)
            record = self._move(frame)
        except BaseException:
            self._norms.put_back(statistics)
            raise
        record.step, record.batch = self.totals.steps + 1, self.totals.batches
        moved = record.confident >= 0 and not record.refused
        if record.refused:
            self._norms.put_back(statistics)
        if moved:
            self._after_step(record)
        ways = self.totals.count(record)
        if ways:
            self._watch.travelled = [
                a + b for a, b in zip(self._watch.travelled, ways, strict=True)
            ]
        if moved and method.reset is not None and method.reset.is_due(record.loss, frame.logits):
            self.restart()
            self.totals.resets += 1
        record.confident = max(record.confident, 0)
        steps.append(record)
        return frame

    def _move(self, frame: Frame) -> _core.StepRecord:
        """Choose and move, by what the pass found."""
        assert frame.facts is not None
        loss, confident, moved = frame.facts.tolist()
        if confident < 0:
            record = self._stepper.pause(loss)
        else:
            probed = [] if frame.probed is None else frame.probed.tolist()
            spread = 1.0 if self._spread is None else self._spread.value
            record = self._stepper.move(loss, probed, frame.images.shape[0] / spread, moved)
        record.confident = int(confident)
        # Weights that autocast rounded are old now.
        if torch.is_autocast_enabled(frame.images.device.type):
            torch.clear_autocast_cache()
        return record

    @torch.no_grad()
    def _after_step(self, record: _core.StepRecord) -> None:
        assert self._arena is not None
        if self._method.teacher is not None:
            self._method.teacher.follow()
        for part in self._method.after_step:
            part.after(self._arena, self._options["seed"], record.step)

    @torch.no_grad()
    def _predict(self, frame: Frame, steps: list[_core.StepRecord]) -> Tensor:
        """Return the logits that answer: those of the pass, or of another one after it."""
        assert self._network is not None
        assert self._norms is not None
        o, features = self._options, frame.output.features if frame.output else None
        answered = Output(frame.logits.detach(), None if features is None else features.detach())
        moved = bool(steps) and not steps[-1].refused and bool(steps[-1].weights)
        after = o["predict"] == "after" and moved
        after = after and bool(steps[-1].selected or self._method.after_step or self._method.reset)
        # A student that saw the view alone has not answered yet.
        unseen = bool(steps) and o["answer"] == "student" and not self._method.loss.needs.images
        if after or unseen:
            with self._norms.still():
                answered = self._network(frame.images)
        if self._method.readout is not None:
            return self._method.readout.correct(answered)
        return answered.logits

    def _watch_over(self, last: Last, health: _core.BatchHealth, seen: Seen) -> None:
        event = self._watch.observe(last, health, seen)
        if event is None:
            return
        event.batch = self.totals.batches
        last.health = event
        if not event.collapsed:
            if self._watch.keeps_healthy:
                self._watch.healthy = self._watch.snapshot()
            return
        action = self._watch.guard.action
        self._stopped = self._stopped or action == "stop"
        if action == "rollback":
            self._begin_at(self._watch.healthy or self._watch.source())
            self._watch.guard.forget(all=False)
            self.totals.rollbacks += 1

    def restart(self) -> None:
        """Do the same, but counts, guard and draws go on: for a stream that begins anew."""
        self._check_open()
        self._watch.healthy = None
        self._begin_at(self._watch.source())

    def _begin_at(self, snapshot: Snapshot) -> None:
        with self._runner.scope():
            self._watch.restore(snapshot)
            self._stepper.restart()
            for part in self._parts.values():
                part.restart()

    def _adapts_now(self) -> bool:
        due = (self.totals.batches - 1) % self._options["adapt_every"] == 0
        return not self._stopped and not self._stepper.idle and due

    def _know_classes(self, classes: int) -> None:
        if classes == self._classes:
            return
        self._classes = classes
        self._watch.know_classes(classes)
        assert self._norms is not None
        if self._norms.mode.name == "adaptive":
            self._spread = _core.LabelSpread(classes)
        if self._method.store is not None:
            self._method.store.attach(classes)
