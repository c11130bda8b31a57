"""How logits become answers: the readouts of gala/method."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import torch
from torch import Tensor, nn
from torch.nn import functional

from gala_tta._loss_terms import entropies
from gala_tta._parts import Output, Part, fail, over


class Readout(Part):
    """Makes the answer from logits and features, which stay as they are."""

    needs_features = False

    def attach(self, head: nn.Module | None) -> None:
        """Learn the classifier, once, before anything else."""

    def correct(self, output: Output) -> Tensor:
        raise NotImplementedError


class Prior(Readout):
    def __init__(self, o: SimpleNamespace) -> None:
        pass

    def correct(self, output: Output) -> Tensor:
        logits = output.logits
        images, classes = logits.shape
        finite = torch.isfinite(logits).all(1, keepdim=True)
        p = torch.where(finite, torch.softmax(logits, 1), torch.zeros_like(logits))
        prior = p.sum(0) / finite.sum().clamp_min(1)
        smooth = over(max(1 / images, 1 / classes), prior.max().clamp_min(1e-12))
        return logits * ((prior + smooth) / (1 + smooth * classes))


def _sound(output: Output) -> tuple[Tensor, Tensor]:
    features = output.features
    assert features is not None
    sound = torch.isfinite(output.logits).all(1).logical_and(torch.isfinite(features).all(1))
    return sound, features.float()


class Lame(Readout):
    needs_features = True

    def __init__(self, o: SimpleNamespace) -> None:
        self._o = o

    def correct(self, output: Output) -> Tensor:
        sound, features = _sound(output)
        rows = sound.nonzero().squeeze(1)
        if rows.shape[0] == 0:
            return output.logits
        p = torch.softmax(output.logits.index_select(0, rows).float(), 1)
        kernel = self._affinity(features.index_select(0, rows))
        log_p = (p + 1e-10).log()
        y = torch.softmax(log_p, 1)
        before = float("inf")
        for step in range(self._o.steps):
            pairs = kernel @ y
            y = torch.softmax(log_p + pairs, 1)
            energy = float((y * (y.clamp_min(1e-20).log() - log_p - pairs)).sum())
            if step > 1 and abs(energy - before) <= 1e-8 * abs(before):
                break
            before = energy
        return output.logits.index_copy(0, rows, y.to(output.logits.dtype))

    def _affinity(self, features: Tensor) -> Tensor:
        unit = functional.normalize(features, dim=1)
        distance = torch.cdist(unit, unit, compute_mode="donot_use_mm_for_euclid_dist")
        kth = min(self._o.neighbours, features.shape[0])
        sigma = distance.topk(kth, dim=1, largest=False).values[:, kth - 1].mean()
        return (-(distance * distance) / (2 * sigma * sigma).clamp_min(1e-30)).exp()


class T3a(Readout):
    needs_features = True
    remembers = ("features", "labels", "entropy")

    def __init__(self, o: SimpleNamespace) -> None:
        self._keep = o.keep
        self._weight = torch.empty(0)
        self._bias: Tensor | None = None
        self.features = self.labels = self.entropy = torch.empty(0)

    def attach(self, head: nn.Module | None) -> None:
        if not isinstance(head, nn.Linear):
            fail("readout t3a: the network has no linear head")
        self._weight = head.weight.detach().clone()
        self._bias = None if head.bias is None else head.bias.detach().clone()
        self.reset()

    @torch.no_grad()
    def reset(self) -> None:
        logits = self._weight @ self._weight.t()
        if self._bias is not None:
            logits = logits + self._bias
        self.features, self.labels = self._weight.clone(), logits.argmax(1)
        self.entropy = entropies(logits)

    def correct(self, output: Output) -> Tensor:
        sound, features = _sound(output)
        logits = output.logits.float()
        rows = sound.nonzero().squeeze(1)
        known = logits.index_select(0, rows)
        self.features = torch.cat([self.features, features.index_select(0, rows)])
        self.labels = torch.cat([self.labels, known.argmax(1)])
        self.entropy = torch.cat([self.entropy, entropies(known)])
        if self._keep:
            self._forget_unsure(logits.shape[1])
        prototypes = torch.zeros_like(self._weight)
        prototypes.index_add_(0, self.labels, functional.normalize(self.features, dim=1))
        found = features @ functional.normalize(prototypes, dim=1).t()
        return torch.where(sound.unsqueeze(1), found, logits).to(output.logits.dtype)

    def _forget_unsure(self, classes: int) -> None:
        """Of each class the `keep` of least entropy stay."""
        kept = []
        for c in range(classes):
            mine = self.labels.eq(c).nonzero().squeeze(1)
            order = self.entropy.index_select(0, mine).sort(stable=True).indices
            kept.append(mine.index_select(0, order[: self._keep]))
        rows = torch.cat(kept)
        self.features = self.features.index_select(0, rows)
        self.labels = self.labels.index_select(0, rows)
        self.entropy = self.entropy.index_select(0, rows)


READOUTS: dict[str, Callable[[SimpleNamespace], Readout]] = {
    "prior": Prior,
    "lame": Lame,
    "t3a": T3a,
}
