"""How much each image of a batch counts in the loss: the rules of gala/loss."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import torch
from torch import Tensor

from gala_tta._loss_terms import entropies
from gala_tta._parts import Output, Part, over


@dataclass
class SampleInput:
    """What a rule decides by."""

    output: Output
    allowed: Tensor | None = None
    look_again: Callable[[Tensor], Output] | None = None
    ages: Tensor | None = None


class SampleRule(Part):
    """Says how much each image counts: weights [N], without gradient."""

    looks_again = False
    wants_ages = False

    def weigh(self, given: SampleInput) -> Tensor:
        raise NotImplementedError


def only_allowed(kept: Tensor, given: SampleInput) -> Tensor:
    """Return `kept` without the images that are not allowed."""
    if given.allowed is None:
        return kept
    return torch.where(given.allowed.ne(0), kept, torch.zeros_like(kept))


class ClassMean:
    """A moving mean of answers, [classes] on their device, written in place."""

    def __init__(self, keep: float, even: bool) -> None:
        self._keep, self._even = keep, even
        self.mean: Tensor | None = None
        self.known: Tensor | None = None

    def prepare(self, p: Tensor) -> None:
        if self.mean is None:
            self.mean = torch.zeros(p.shape[1], dtype=p.dtype, device=p.device)
            self.known = torch.zeros((), dtype=p.dtype, device=p.device)
            self.reset()

    def cosine(self, p: Tensor) -> Tensor:
        assert self.mean is not None
        assert self.known is not None
        return torch.cosine_similarity(self.mean.unsqueeze(0), p, 1) * self.known

    def take(self, p: Tensor, kept: Tensor) -> None:
        assert self.mean is not None
        assert self.known is not None
        count = kept.sum()
        fresh = (p * kept.unsqueeze(1)).sum(0) / count.clamp_min(1)
        moved = torch.where(
            self.known.ne(0), self.mean * self._keep + fresh * (1 - self._keep), fresh
        )
        sound = torch.isfinite(fresh).all().logical_and(count.gt(0))
        self.mean.copy_(torch.where(sound, moved, self.mean))
        self.known.copy_(torch.where(sound, torch.ones_like(self.known), self.known))

    def reset(self) -> None:
        if self.mean is not None and self.known is not None:
            self.mean.fill_(1.0 / self.mean.shape[0] if self._even else 0.0)
            self.known.fill_(1 if self._even else 0)


class _Remembering(SampleRule):
    """A rule that remembers a mean of the answers."""

    remembers = ("mean", "known")

    def __init__(self, seen: ClassMean) -> None:
        self._seen = seen

    @property
    def mean(self) -> Tensor | None:
        return self._seen.mean

    @mean.setter
    def mean(self, value: Tensor | None) -> None:
        self._seen.mean = value

    @property
    def known(self) -> Tensor | None:
        return self._seen.known

    @known.setter
    def known(self, value: Tensor | None) -> None:
        self._seen.known = value

    def reset(self) -> None:
        self._seen.reset()


class Eta(_Remembering):
    def __init__(self, o: SimpleNamespace) -> None:
        super().__init__(ClassMean(0.9, even=False))
        self._o = o

    def weigh(self, given: SampleInput) -> Tensor:
        logits = given.output.logits.detach()
        p = torch.softmax(logits, 1)
        self._seen.prepare(p)
        margin = self._o.margin * math.log(logits.shape[1])
        entropy = entropies(logits)
        new = self._seen.cosine(p).abs().lt(self._o.redundancy)
        kept = only_allowed(entropy.lt(margin).logical_and(new).to(p.dtype), given)
        self._seen.take(p, kept)
        scale = over(logits.shape[0], kept.sum().clamp_min(1))
        return torch.where(kept.ne(0), (margin - entropy).exp() * scale, torch.zeros_like(entropy))


class DiverseCertain(_Remembering):
    def __init__(self, o: SimpleNamespace) -> None:
        super().__init__(ClassMean(o.keep, even=True))
        self._sharpness = o.sharpness

    def weigh(self, given: SampleInput) -> Tensor:
        logits = given.output.logits.detach()
        p = torch.softmax(logits, 1)
        self._seen.prepare(p)
        diversity = _stretched(1 - self._seen.cosine(p))
        certainty = _stretched(-entropies(logits))
        weights = (diversity * certainty * self._sharpness).exp()
        self._seen.take(p, torch.ones_like(diversity))
        unlike = torch.where(diversity.lt(diversity.mean()), torch.zeros_like(weights), weights)
        return only_allowed(unlike, given)


def _stretched(values: Tensor) -> Tensor:
    """To [0, 1]; all alike become zeros."""
    least = values.min()
    return (values - least) / (values.max() - least).clamp_min(1e-30)


class Certain(SampleRule):
    def __init__(self, o: SimpleNamespace) -> None:
        self._margin = o.margin

    def weigh(self, given: SampleInput) -> Tensor:
        logits = given.output.logits.detach()
        margin = self._margin * math.log(logits.shape[1])
        kept = only_allowed(entropies(logits).lt(margin).to(logits.dtype), given)
        return kept * (over(logits.shape[0], kept.sum().clamp_min(1)))


class Deyo(SampleRule):
    looks_again = True

    def __init__(self, o: SimpleNamespace) -> None:
        self._o = o

    def weigh(self, given: SampleInput) -> Tensor:
        logits = given.output.logits.detach()
        classes = math.log(logits.shape[1])
        entropy = entropies(logits)
        sure = only_allowed(entropy.lt(self._o.margin * classes).to(logits.dtype), given)
        rows = sure.nonzero().squeeze(1)
        weights = torch.zeros_like(entropy)
        if rows.shape[0] == 0:
            return weights
        assert given.look_again is not None
        p = torch.softmax(logits, 1).index_select(0, rows)
        shuffled = torch.softmax(given.look_again(rows).logits.detach(), 1)
        label = p.argmax(1, keepdim=True)
        fall = (p.gather(1, label) - shuffled.gather(1, label)).squeeze(1)
        kept = fall.gt(self._o.drop).to(logits.dtype)
        by_entropy = (self._o.weight_margin * classes - entropy.index_select(0, rows)).exp()
        weight = (by_entropy + fall.exp()) * (over(logits.shape[0], kept.sum().clamp_min(1)))
        return weights.index_copy(
            0, rows, torch.where(kept.ne(0), weight, torch.zeros_like(weight))
        )


class Age(SampleRule):
    wants_ages = True

    def __init__(self, o: SimpleNamespace) -> None:
        pass

    def weigh(self, given: SampleInput) -> Tensor:
        assert given.ages is not None
        return only_allowed(torch.sigmoid(-given.ages), given)


SAMPLE_RULES: dict[str, Callable[[SimpleNamespace], SampleRule]] = {
    "eta": Eta,
    "diverse_certain": DiverseCertain,
    "certain": Certain,
    "deyo": Deyo,
    "age": Age,
}
