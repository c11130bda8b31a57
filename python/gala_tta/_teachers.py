"""Another network beside the student: the teachers of gala/method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import torch
from torch import Tensor

from gala_tta._arena import Arena
from gala_tta._norms import Norms
from gala_tta._parts import Output, Part
from gala_tta._views import View


@dataclass
class Site:
    """What a teacher works with."""

    forward: Callable[[Tensor], Output]
    arena: Arena
    norms: Norms
    view: View | None
    drift: Tensor | None = None


class SourceTeacher(Part):
    """The source model, for ever, with running statistics of its own where the mode moves them."""

    remembers: tuple[str, ...] = ("statistics",)
    looks = 0

    def __init__(self, o: SimpleNamespace | None = None) -> None:
        self.statistics: list[Tensor] = []
        self._first: list[Tensor] = []

    def attach(self, site: Site) -> None:
        """Learn the source: the student is it when this is called."""
        self._site = site
        self._source = site.arena.values.clone()
        self.statistics, self._first = site.norms.copies(), site.norms.copies()

    def answer(self, images: Tensor, adapting: bool) -> Output:
        """Return its answer, without gradient."""
        return self._answer_with(self._source, images, follow=adapting)

    def follow(self) -> None:
        """Learn from the student after a step."""

    @torch.no_grad()
    def _answer_with(self, values: Tensor, images: Tensor, follow: bool) -> Output:
        site = self._site
        still = not (follow and self.statistics)
        with (
            site.arena.holding(values),
            site.norms.holding(self.statistics),
            site.norms.still(still),
        ):
            return site.forward(images)

    @torch.no_grad()
    def reset(self) -> None:
        for now, then in zip(self.statistics, self._first, strict=True):
            now.copy_(then)


class MeanTeacher(SourceTeacher):
    """A moving mean of the student, over several looks where the source model is unsure."""

    remembers = ("statistics", "values")

    def __init__(self, o: SimpleNamespace) -> None:
        super().__init__(o)
        self._o = o
        self.looks = o.views
        self.values = torch.empty(0)

    def attach(self, site: Site) -> None:
        super().attach(site)
        self.values = self._source.clone()

    @torch.no_grad()
    def answer(self, images: Tensor, adapting: bool) -> Output:
        if not (adapting and self._o.views and self._unsure(images)):
            return self._answer_with(self.values, images, follow=adapting)
        view = self._site.view
        assert view is not None
        logits: Tensor | None = None
        features: Tensor | None = None
        for which in range(self._o.views):
            one = self._answer_with(self.values, view.look(images, which), follow=which == 0)
            logits = one.logits.clone() if logits is None else logits.add_(one.logits)
            if one.features is not None:
                features = one.features.clone() if features is None else features + one.features
        assert logits is not None
        if features is not None:
            features = features / self._o.views
        return Output(logits.div_(self._o.views), features)

    def _unsure(self, images: Tensor) -> bool:
        source = self._answer_with(self._source, images, follow=False).logits
        return bool(torch.softmax(source, 1).amax(1).mean() < self._o.below)

    @torch.no_grad()
    def follow(self) -> None:
        student, drift = self._site.arena.values, self._site.drift
        if drift is None:
            self.values.mul_(self._o.keep).add_(student, alpha=1 - self._o.keep)
        else:
            self.values.add_((student - self.values).mul_((1 - drift) * (1 - self._o.keep)))

    @torch.no_grad()
    def reset(self) -> None:
        super().reset()
        self.values.copy_(self._source)


TEACHERS: dict[str, Callable[[SimpleNamespace], SourceTeacher]] = {
    "mean": MeanTeacher,
    "source": SourceTeacher,
}
