"""What watches over a method: the guard, the way back, and who answers where nobody does."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gala_tta import _core
from gala_tta._arena import Arena
from gala_tta._norms import Norms
from gala_tta._pass import Network
from gala_tta._records import Last

# float32 has 24 bits: beside such an update what was there before is rounded away.
_DROWNS = 1 << 24


@dataclass
class Snapshot:
    """Parameters and statistics, and the way they went."""

    values: Tensor
    statistics: list[Tensor]
    travelled: list[float]


@dataclass
class Seen:
    """What the network saw last, and its own answers."""

    images: Tensor
    logits: Tensor


def look_at_rows(logits: Tensor) -> _core.BatchHealth:
    """Return what the guard sees of logits [N, C]."""
    rows = logits.detach().float().cpu().contiguous()
    return _core.look_at(rows.data_ptr(), rows.shape[0], rows.shape[1])


def squared_norm(values: Tensor) -> float:
    """Return Σ x² in double."""
    if values.device.type == "cpu" and values.is_contiguous():
        return _core.sum_of_squares(values.data_ptr(), values.numel())
    return float(torch.linalg.vector_norm(values, dtype=torch.double)) ** 2


class Watch:
    """The guard of an adapter, and the snapshots it goes back to."""

    def __init__(self, guard: str, network: Network, arena: Arena, norms: Norms) -> None:
        self._text = guard
        self.guard = _core.Guard(guard, 2)  # says at once what is wrong with its spec
        self._classes = 0
        self._network, self._arena, self._norms = network, arena, norms
        self.travelled: list[float] = []
        self.source_norm = max(math.sqrt(squared_norm(arena.source)), 1e-150)
        self.healthy: Snapshot | None = None

    def know_classes(self, classes: int) -> None:
        """Begin to count answers of so many classes."""
        if classes != self._classes:
            self._classes = classes
            self.guard = _core.Guard(self._text, classes)

    @property
    def keeps_healthy(self) -> bool:
        """Whether the last healthy parameters are where it goes back to."""
        return self.guard.action == "rollback" and self.guard.to_healthy

    def snapshot(self) -> Snapshot:
        """Return a copy of parameters and statistics."""
        return Snapshot(self._arena.values.clone(), self._norms.copies(), list(self.travelled))

    def source(self) -> Snapshot:
        """Return what the source has."""
        return Snapshot(
            self._arena.source, self._norms.source_copies(), [0.0] * len(self.travelled)
        )

    @torch.no_grad()
    def restore(self, snapshot: Snapshot) -> None:
        """Write it into the network."""
        self._arena.values.copy_(snapshot.values)
        self._norms.put_back(snapshot.statistics)
        self.travelled = list(snapshot.travelled)

    def observe(
        self, last: Last, health: _core.BatchHealth, seen: Seen
    ) -> _core.HealthEvent | None:
        """Take a batch in; a judgement where one is due."""
        if self.guard.action == "off":
            return None
        for step in last.steps:
            pairs = zip(step.weights, step.update_norms, strict=True)
            applied = math.sqrt(sum((weight * norm) ** 2 for weight, norm in pairs))
            health.update_norm = max(health.update_norm, applied)
            health.refused += step.refused
            health.steps += 1
        health.lost = health.update_norm > _DROWNS * max(self.source_norm, 1.0)
        return self._judge(seen) if self.guard.observe(health) else None

    def _judge(self, seen: Seen) -> _core.HealthEvent:
        # On a GPU the way bounds the distance; only where the bound is too large it is looked at.
        displacement, exact = 0.0, self._arena.device.type == "cpu"
        if not exact:
            displacement = math.sqrt(sum(way * way for way in self.travelled)) / self.source_norm
            exact = self.guard.is_far(displacement)
        if exact:
            difference = self._arena.source - self._arena.values
            displacement = math.sqrt(squared_norm(difference)) / self.source_norm
        if self.guard.asks_source(displacement):
            self._compare_with_source(seen)
        return self.guard.judge(displacement, exact)

    def _compare_with_source(self, seen: Seen) -> None:
        """Tell the guard whether the source's parameters still answer as these do.

        Any of their answers will do, since each has streams where it is worth little: by the
        statistics in use, which may have followed other parameters; by the batch's, which may be
        small or of one class; by the source's, which do not know this weather.
        """
        ours = look_at_rows(seen.logits).predictions
        answered, agreed, nearest = sum(each >= 0 for each in ours), -1, list(ours)
        witnesses = ["present"]
        if len(self._norms) > 0 and self._norms.mode.name != "source":
            witnesses += [name for name in ("batch", "source") if name != self._norms.mode.name]
        for witness in witnesses:
            if 2 * agreed >= answered:
                break
            theirs = look_at_rows(self.ask_source(seen.images, witness)).predictions
            equal = sum(a == b and a >= 0 for a, b in zip(ours, theirs, strict=True))
            if equal > agreed:
                agreed, nearest = equal, theirs
        self.guard.compare(ours, nearest)

    @torch.no_grad()
    def ask_source(self, images: Tensor, statistics: str = "source") -> Tensor:
        """Return the logits by the source's parameters; nothing moves.

        `statistics` says whose: of the source, of the batch, or as they are at present.
        """
        norms = self._norms
        how = norms.still() if statistics == "present" else norms.as_source(statistics)
        with self._arena.holding(self._arena.source), how:
            return self._network(images).logits

    @torch.no_grad()
    def answer_again(self, last: Last, images: Tensor) -> None:
        """Ask again about images without a finite answer.

        With the source's parameters and statistics an image is answered by itself, so those that
        have no finite answer there are broken.
        """
        asked = _without_class(last.predictions)
        source = self.ask_source(images[asked])
        broken = [asked[row] for row in _without_class(look_at_rows(source).predictions)]
        if broken and len(broken) < len(asked):
            # The batch's statistics may have spread what is broken: once more, without it.
            sound = [i for i in range(images.shape[0]) if i not in broken]
            with self._norms.still():
                _fill_in(last, self._network(images[sound]).logits, sound)
        last.from_source = _fill_in(last, source, asked)
        last.unanswered = _without_class(last.predictions)


def _without_class(predictions: list[int]) -> list[int]:
    return [number for number, each in enumerate(predictions) if each < 0]


def _fill_in(last: Last, logits: Tensor, numbers: list[int]) -> list[int]:
    """Take row k as the answer to image numbers[k], where that is finite and it has none yet."""
    classes = look_at_rows(logits).predictions
    rows = [
        k for k, number in enumerate(numbers) if classes[k] >= 0 and last.predictions[number] < 0
    ]
    images = [numbers[k] for k in rows]
    for k in rows:
        last.predictions[numbers[k]] = classes[k]
    if rows:
        last.logits = last.logits.clone()
        last.logits[images] = logits[rows].to(last.logits.dtype)
    return images
