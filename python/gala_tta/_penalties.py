"""What holds parameters back: a term over them, whose gradient is added to that of the loss."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace

import torch
from torch import Tensor

from gala_tta._arena import Arena
from gala_tta._parts import Part, fail

# The logits of images, with gradient, and without moving any statistics.
Forward = Callable[[Tensor], Tensor]


class Penalty(Part):
    """Learns the source before anything moves, then adds to gradients."""

    wants_source_images = False

    def __init__(self) -> None:
        self._source = torch.empty(0)
        # The penalty counts by this scalar, which changes in place (drift).
        self.factor: Tensor | None = None

    def learn(self, arena: Arena, forward: Forward, images: Iterable[Tensor] | None) -> None:
        self._source = arena.values.clone()

    def add(self, arena: Arena, gradients: list[Tensor | None]) -> None:
        raise NotImplementedError


class Distance(Penalty):
    def __init__(self, o: SimpleNamespace) -> None:
        super().__init__()
        self._weight = o.weight
        self.importance: Tensor | None = None

    @torch.no_grad()
    def add(self, arena: Arena, gradients: list[Tensor | None]) -> None:
        pull = (arena.values - self._source).mul_(2 * self._weight)
        if self.importance is not None:
            pull.mul_(self.importance)
        if self.factor is not None:
            pull.mul_(self.factor)
        for number, part in enumerate(arena.views(pull)):
            gradient = gradients[number]
            gradients[number] = part.clone() if gradient is None else gradient.add_(part)


class Fisher(Distance):
    remembers = ("importance",)
    wants_source_images = True

    def __init__(self, o: SimpleNamespace) -> None:
        super().__init__(o)
        self._images = o.images

    def learn(self, arena: Arena, forward: Forward, images: Iterable[Tensor] | None) -> None:
        super().learn(arena, forward, images)
        importance = torch.zeros_like(arena.values)
        parts = arena.views(importance)
        seen = batches = 0
        for batch in images or ():
            if self._images and seen >= self._images:
                break
            if self._images:
                batch = batch[: self._images - seen]
            seen += batch.shape[0]
            batches += 1
            with torch.enable_grad():
                log_p = torch.log_softmax(forward(batch.to(arena.device)), 1)
                label = log_p.detach().argmax(1, keepdim=True)
                (-log_p.gather(1, label).mean()).backward()  # type: ignore[no-untyped-call]
            with torch.no_grad():
                for part, gradient in zip(parts, arena.take_gradients(), strict=True):
                    if gradient is not None:
                        part.addcmul_(gradient, gradient)
        if batches == 0:
            fail("penalty fisher: there are no images of the source")
        self.importance = importance.div_(batches)


class Cosine(Penalty):
    def __init__(self, o: SimpleNamespace) -> None:
        super().__init__()
        self._weight = o.weight

    @torch.no_grad()
    def add(self, arena: Arena, gradients: list[Tensor | None]) -> None:
        weight = self._weight / len(gradients)
        pairs = zip(arena.views(arena.values), arena.views(self._source), strict=True)
        for number, (now, then) in enumerate(pairs):
            square, product = now.square().sum(), (now * then).sum()
            lengths = (square * then.square().sum()).sqrt()
            pull = (now * (product / square) - then) / lengths * weight
            if self.factor is not None:
                pull = pull * self.factor
            pull = torch.where(lengths > 0, pull, torch.zeros_like(pull))
            gradient = gradients[number]
            gradients[number] = pull if gradient is None else gradient.add_(pull)


PENALTIES: dict[str, Callable[[SimpleNamespace], Penalty]] = {
    "fisher": Fisher,
    "distance": Distance,
    "cosine": Cosine,
}
