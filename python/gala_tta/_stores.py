"""Images of the stream that are kept: the stores of gala/method."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from gala_tta._parts import Part, fail


@dataclass
class Shown:
    """What a batch is answered and adapted by."""

    images: Tensor
    rows: Tensor | None = None
    adapt: bool = True
    statistics: bool = True


class Store(Part):
    """Says on which images steps are made."""

    # Whether a batch is answered before the steps on what is kept.
    answers_first = False

    def attach(self, classes: int) -> None:
        """Learn how many classes there are."""

    def show(self, images: Tensor) -> Shown:
        """Return what is answered."""
        return Shown(images)

    def take(self, images: Tensor, logits: Tensor, step: Callable[[Tensor], None]) -> None:
        """Keep images, and make steps on what is kept."""

    def ages(self) -> Tensor | None:
        """Return how long ago each image of a step came."""
        return None


@dataclass
class _Item:
    image: Tensor
    uncertainty: float
    age: int = 0


class Balanced(Store):
    """The memory of RoTTA: no class above its share, by age and entropy."""

    remembers = ("images", "labels", "uncertainties", "item_ages", "seen")
    answers_first = True

    def __init__(self, o: SimpleNamespace) -> None:
        self._o = o
        self._classes: list[list[_Item]] = []
        self._ages: Tensor | None = None
        self.seen = 0

    def attach(self, classes: int) -> None:
        self._classes = [[] for _ in range(classes)]

    def show(self, images: Tensor) -> Shown:
        return Shown(images, adapt=False, statistics=False)

    def take(self, images: Tensor, logits: Tensor, step: Callable[[Tensor], None]) -> None:
        p = torch.softmax(logits.float(), 1)
        uncertainty = (-(p * (p + 1e-6).log()).sum(1)).tolist()  # as published
        labels = logits.argmax(1).tolist()
        for number, image in enumerate(images):
            if math.isfinite(uncertainty[number]):
                self._add(image, labels[number], uncertainty[number])
            self.seen += 1
            if self._o.every > 0 and self.seen % self._o.every == 0:
                self._make_step(step)
        if self._o.every == 0:
            self._make_step(step)

    def ages(self) -> Tensor | None:
        return self._ages

    def reset(self) -> None:
        self._classes = [[] for _ in self._classes]
        self._ages, self.seen = None, 0

    def _score(self, uncertainty: float, age: int) -> float:
        share = age / self._o.size
        return 1 / (1 + math.exp(-share)) + uncertainty / math.log(len(self._classes))

    def _add(self, image: Tensor, label: int, uncertainty: float) -> None:
        kept = next((item for items in self._classes for item in items), None)
        if kept is not None and kept.image.shape != image.shape:
            self._classes = [[] for _ in self._classes]
        if self._make_room(label, self._score(uncertainty, 0)):
            self._classes[label].append(_Item(image.detach().clone(), uncertainty))
        for items in self._classes:
            for item in items:
                item.age += 1

    def _make_room(self, label: int, score: float) -> bool:
        """Whether there is a place for a new image, also by sending one away."""
        if len(self._classes[label]) >= self._o.size / len(self._classes):
            return self._remove_worst([label], score)
        if sum(map(len, self._classes)) < self._o.size:
            return True
        most = max(map(len, self._classes))
        largest = [c for c, items in enumerate(self._classes) if len(items) == most]
        return self._remove_worst(largest, score)

    def _remove_worst(self, classes: list[int], new_score: float) -> bool:
        highest, where = -1.0, (0, 0)
        for c in classes:
            for i, item in enumerate(self._classes[c]):
                each = self._score(item.uncertainty, item.age)
                if each >= highest:  # of equals the last goes
                    highest, where = each, (c, i)
        if not highest > new_score:
            return False
        del self._classes[where[0]][where[1]]
        return True

    def _make_step(self, step: Callable[[Tensor], None]) -> None:
        kept = [item for items in self._classes for item in items]
        if not kept:
            return
        images = torch.stack([item.image for item in kept])
        self._ages = torch.tensor([item.age / self._o.size for item in kept]).to(images.device)
        step(images)

    # What is saved, class by class.

    def _flat(self) -> list[tuple[int, _Item]]:
        return [(c, item) for c, items in enumerate(self._classes) for item in items]

    @property
    def images(self) -> Tensor | None:
        kept = [item.image for _, item in self._flat()]
        return torch.stack(kept) if kept else None

    @property
    def labels(self) -> list[int]:
        return [c for c, _ in self._flat()]

    @property
    def uncertainties(self) -> list[float]:
        return [item.uncertainty for _, item in self._flat()]

    @property
    def item_ages(self) -> list[int]:
        return [item.age for _, item in self._flat()]

    def load(self, state: Mapping[str, Any]) -> None:
        lists = [state[name] for name in ("labels", "uncertainties", "item_ages")]
        images = [] if state["images"] is None else list(state["images"])
        if any(len(each) != len(images) for each in lists):
            fail("the images that the state keeps are not as many as their labels")
        self.reset()
        for image, label, uncertainty, age in zip(images, *lists, strict=True):
            if label >= len(self._classes):
                fail(f"the state keeps an image of class {label}")
            self._classes[label].append(_Item(image.clone(), uncertainty, age))
        self.seen = state["seen"]


class Window(Store):
    """The last images: every batch is answered among them."""

    remembers = ("images", "count", "next")

    def __init__(self, o: SimpleNamespace) -> None:
        self._length = o.length
        self.images: Tensor | None = None
        self.count = self.next = 0

    def show(self, images: Tensor) -> Shown:
        batch, length = images.shape[0], self._length
        if batch > length:
            fail(
                f"store window: a batch of {batch} images does not fit into a window of {length} "
                f"(length={batch} or more, smaller batches, or no store: such batches have "
                "statistics of their own)"
            )
        if self.images is None or self.images.shape[1:] != images.shape[1:]:
            self.images = torch.zeros(length, *images.shape[1:], device=images.device)
            self.count = self.next = 0
        # A broken image had its turn; if it stayed it would spoil the statistics of all that come
        # while the window holds it. In its place stands one that is new.
        places = (-1, *[1] * (images.dim() - 1))
        sound = self.images.isfinite().flatten(1).all(1).view(places)
        self.images.copy_(torch.where(sound, self.images, images[:1].detach().float()))
        rows = torch.arange(self.next, self.next + batch, device=images.device) % length
        self.images[rows] = images.detach().float()
        all_new = self.next + batch >= length
        self.count = min(self.count + batch, length)
        self.next = (self.next + batch) % length
        return Shown(self.images[: self.count], rows, adapt=all_new)

    def reset(self) -> None:
        self.images = None
        self.count = self.next = 0


STORES: dict[str, Callable[[SimpleNamespace], Store]] = {"balanced": Balanced, "window": Window}
