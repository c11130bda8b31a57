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

    def observe(self, last: Last, health: _core.BatchHealth) -> _core.HealthEvent | None:
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
        return self._judge() if self.guard.observe(health) else None

    def _judge(self) -> _core.HealthEvent:
        # On a GPU the way bounds the distance; only where the bound is too large it is looked at.
        if self._arena.device.type != "cpu":
            bound = math.sqrt(sum(way * way for way in self.travelled)) / self.source_norm
            if bound <= self.guard.most_displacement:
                return self.guard.judge(bound, exact=False)
        difference = self._arena.source - self._arena.values
        return self.guard.judge(math.sqrt(squared_norm(difference)) / self.source_norm, exact=True)

    @torch.no_grad()
    def ask_source(self, images: Tensor) -> Tensor:
        """Return the logits of the source model, with the source's statistics."""
        with self._arena.holding(self._arena.source), self._norms.as_source():
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
