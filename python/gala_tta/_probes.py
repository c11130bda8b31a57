"""A second gradient, of another scalar than the loss, that the selectors palm and law choose by."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import torch
from torch import Tensor

from gala_tta._arena import Arena
from gala_tta._parts import Part


class Probe(Part):
    """What it finds in the gradients is a weight for each layer, in double, on the device."""

    def attach(self, arena: Arena, layers: list[tuple[str, list[int]]]) -> None:
        layer_of = [0] * len(arena.tensors)
        counts = []
        for number, (_, members) in enumerate(layers):
            for t in members:
                layer_of[t] = number
            counts.append(float(sum(arena.slots[t].parameter.numel() for t in members)))
        self._layer_of = torch.tensor(layer_of, device=arena.device)
        self._counts = torch.tensor(counts, dtype=torch.double, device=arena.device)

    def scalar(self, logits: Tensor) -> Tensor:
        raise NotImplementedError

    def look(self, arena: Arena, gradients: list[Tensor | None]) -> Tensor:
        raise NotImplementedError

    def see(self, arena: Arena, gradients: list[Tensor | None]) -> None:
        """See the gradients of the step, after it looked at its own."""

    def _sum(self, by_tensor: Tensor) -> Tensor:
        return torch.zeros_like(self._counts).index_add(0, self._layer_of, by_tensor.double())

    @staticmethod
    def _given(arena: Arena, gradients: list[Tensor | None]) -> list[Tensor]:
        return [
            torch.zeros_like(view) if gradient is None else gradient
            for view, gradient in zip(arena.views(arena.values), gradients, strict=True)
        ]


class PalmProbe(Probe):
    remembers = ("steady", "weights")

    def __init__(self, o: SimpleNamespace) -> None:
        self._o = o
        self.steady = self.weights = torch.empty(0)

    def attach(self, arena: Arena, layers: list[tuple[str, list[int]]]) -> None:
        super().attach(arena, layers)
        self.steady = torch.zeros_like(arena.values)
        self.weights = torch.zeros_like(self._counts)

    def scalar(self, logits: Tensor) -> Tensor:
        return -torch.log_softmax(logits / self._o.temperature, 1).sum(1).mean()

    @torch.no_grad()
    def look(self, arena: Arena, gradients: list[Tensor | None]) -> Tensor:
        given = self._given(arena, gradients)
        values, steady = arena.views(arena.values), arena.views(self.steady)
        size = self._sum(torch.stack(torch._foreach_norm(given, 1)))
        chosen = size.le(self._o.threshold)
        fresh = (chosen.float() * (1 - self._o.keep)).index_select(0, self._layer_of)
        sound = chosen.index_select(0, self._layer_of)
        sensitivity = list(torch._foreach_mul(values, given))
        torch._foreach_abs_(sensitivity)
        # A layer that is not chosen keeps its mean: nothing of it is fresh. Its gradient need not
        # be finite, and nothing times infinity is no number.
        for number, mean in enumerate(steady):
            mean.lerp_(torch.where(sound[number], sensitivity[number], mean), fresh[number])
        torch._foreach_sub_(sensitivity, steady)
        torch._foreach_abs_(sensitivity)
        torch._foreach_add_(sensitivity, 1e-8)
        torch._foreach_div_(sensitivity, list(torch._foreach_add(steady, 1e-8)))
        unsteady = self._sum(torch.stack(torch._foreach_norm(sensitivity, 1))) / self._counts
        self.weights.copy_(torch.where(chosen, unsteady, self.weights))
        return self.weights

    def reset(self) -> None:
        self.steady.zero_()
        self.weights.zero_()


class LawProbe(Probe):
    remembers = ("information", "carried")

    def __init__(self, o: SimpleNamespace) -> None:
        self._o = o
        self.information = self.carried = torch.empty(0)

    def attach(self, arena: Arena, layers: list[tuple[str, list[int]]]) -> None:
        super().attach(arena, layers)
        self.information = torch.zeros_like(self._counts)
        if self._o.carried:
            self.carried = torch.zeros_like(arena.values)

    def scalar(self, logits: Tensor) -> Tensor:
        log_p = torch.log_softmax(logits, 1)
        return -log_p.gather(1, log_p.detach().argmax(1, keepdim=True)).mean()

    @torch.no_grad()
    def look(self, arena: Arena, gradients: list[Tensor | None]) -> Tensor:
        given = self._given(arena, gradients)
        if self._o.carried:
            before = arena.views(self.carried)
            given = [own + last for own, last in zip(given, before, strict=True)]
        norms = torch.stack(torch._foreach_norm(given, 2)).double()
        total = self.information + self._sum(norms * norms) / self._counts
        self.information.copy_(torch.where(torch.isfinite(total).all(), total, self.information))
        root = self.information.sqrt()
        least = root.min()
        return ((root - least) / (root.max() - least + 1e-8)).pow(self._o.power)

    @torch.no_grad()
    def see(self, arena: Arena, gradients: list[Tensor | None]) -> None:
        if not self._o.carried:
            return
        for place, gradient in zip(arena.views(self.carried), gradients, strict=True):
            if gradient is None:
                place.zero_()
            else:
                place.copy_(gradient)

    def reset(self) -> None:
        self.information.zero_()
        self.carried.zero_()


PROBES: dict[str, Callable[[SimpleNamespace], Probe]] = {"palm": PalmProbe, "law": LawProbe}
