"""What stands around a step: where its gradient is taken, what comes after it, when to go back."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace

import torch
from torch import Tensor

from gala_tta import _core
from gala_tta._arena import Arena
from gala_tta._parts import Part, over


class Sharpness:
    """Sharpness-aware minimisation: the gradient at θ + rho · g / |g|."""

    def __init__(self, o: SimpleNamespace) -> None:
        self._rho = o.rho
        self._before: Tensor | None = None

    @torch.no_grad()
    def leave(self, arena: Arena, gradients: list[Tensor | None]) -> None:
        """Move the parameters there, by their gradients."""
        if self._before is None:
            self._before = torch.zeros_like(arena.values)
        self._before.copy_(arena.values)
        known = [each for each in gradients if each is not None]
        if not known:
            return
        norm = torch.stack(torch._foreach_norm(known, 2)).norm()
        scale = over(self._rho, norm + 1e-12)
        for view, gradient in zip(arena.views(arena.values), gradients, strict=True):
            if gradient is not None:
                view.addcmul_(gradient, scale)

    @torch.no_grad()
    def come_back(self, arena: Arena) -> None:
        """Put them back, bit for bit."""
        assert self._before is not None
        arena.values.copy_(self._before)


PERTURBATIONS: dict[str, Callable[[SimpleNamespace], Sharpness]] = {"sam": Sharpness}


class AfterStep(Part):
    """Something done after every step that was not refused."""

    def after(self, arena: Arena, seed: int, step: int) -> None:
        raise NotImplementedError


class Ensemble(AfterStep):
    def __init__(self, o: SimpleNamespace) -> None:
        self._source = o.source

    def after(self, arena: Arena, seed: int, step: int) -> None:
        arena.values.mul_(1 - self._source).add_(arena.source, alpha=self._source)


class Kalman(AfterStep):
    remembers = ("hidden", "variance")

    def __init__(self, o: SimpleNamespace) -> None:
        self._o = o
        self.hidden: Tensor | None = None
        self.variance = 0.0

    def after(self, arena: Arena, seed: int, step: int) -> None:
        o = self._o
        if self.hidden is None:
            self.hidden = arena.source.clone()
        count = sum(slot.parameter.numel() for slot in arena.slots)
        noise = min(1.0, o.noise * count / 38400)
        self.hidden.mul_(o.alpha).add_(arena.source, alpha=1 - o.alpha)
        self.variance = o.alpha * o.alpha * self.variance + noise
        rest = 1 - noise
        beta = max(rest / (self.variance + rest), 0.89)
        beta = 1.0 if beta >= 0.9999 else beta
        self.variance *= beta
        self.hidden.mul_(beta).add_(arena.values, alpha=1 - beta)
        arena.values.mul_(o.gamma).add_(self.hidden, alpha=1 - o.gamma)

    def reset(self) -> None:
        self.hidden, self.variance = None, 0.0


class Restore(AfterStep):
    def __init__(self, o: SimpleNamespace) -> None:
        self._share = o.share

    def after(self, arena: Arena, seed: int, step: int) -> None:
        values = arena.values
        # A generator of this step alone: a run that goes on draws what one without a break draws.
        generator = torch.Generator(values.device).manual_seed(_core.draw(seed, "restore", step))
        drawn = torch.rand(values.shape, generator=generator, device=values.device)
        values.copy_(torch.where(drawn.lt(self._share), arena.source, values))


AFTER_STEPS: dict[str, Callable[[SimpleNamespace], AfterStep]] = {
    "ensemble": Ensemble,
    "kalman": Kalman,
    "restore": Restore,
}


class ResetRule(Part):
    """Says, after a step that was not refused, whether to go back to the source."""

    def is_due(self, loss: float, logits: Tensor) -> bool:
        raise NotImplementedError


class Every(ResetRule):
    remembers = ("steps",)

    def __init__(self, o: SimpleNamespace) -> None:
        self._every = o.steps
        self.steps = 0

    def is_due(self, loss: float, logits: Tensor) -> bool:
        self.steps += 1
        return bool(self.steps >= self._every)

    def reset(self) -> None:
        self.steps = 0


class _Moving(ResetRule):
    """A rule with a moving mean, which begins with the first number it takes in."""

    remembers = ("mean",)

    def __init__(self, keep: float) -> None:
        self._keep = keep
        self.mean: float | None = None

    def _moved(self, value: float) -> float:
        mean = value if self.mean is None else self._keep * self.mean + (1 - self._keep) * value
        self.mean = mean
        return mean

    def reset(self) -> None:
        self.mean = None


class LossReset(_Moving):
    def __init__(self, o: SimpleNamespace) -> None:
        super().__init__(o.keep)
        self._below = o.below

    def is_due(self, loss: float, logits: Tensor) -> bool:
        return bool(self._moved(loss) < self._below)


class Concentration(_Moving):
    def __init__(self, o: SimpleNamespace) -> None:
        super().__init__(o.keep)
        self._above = o.above

    def is_due(self, loss: float, logits: Tensor) -> bool:
        mean = torch.softmax(logits.detach().double(), 1).mean(0)
        entropy = -float(torch.xlogy(mean, mean).sum())
        concentration = 1 - entropy / math.log(logits.shape[1])
        if not math.isfinite(concentration):
            return False
        return bool(self._moved(concentration) > self._above)


RESET_RULES: dict[str, Callable[[SimpleNamespace], ResetRule]] = {
    "every": Every,
    "loss": LossReset,
    "concentration": Concentration,
}
