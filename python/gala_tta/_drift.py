"""How far what the network sees went from what the source saw: the drift of gala/method."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace

import torch
from torch import Tensor

from gala_tta._parts import Output, Part, fail


class FeatureDrift(Part):
    """Class means of the features beside the source's, from 0 to 1, in `value`."""

    remembers = ("mean", "variance", "known", "moving", "value")

    def __init__(self, o: SimpleNamespace) -> None:
        self._keep = o.keep
        self.mean = self.variance = self.known = self.moving = torch.empty(0)
        # In a place that stays, since penalties and teachers read it.
        self.value = torch.zeros(())

    @torch.no_grad()
    def learn(
        self,
        forward: Callable[[Tensor], Output],
        images: Iterable[Tensor] | None,
        device: torch.device,
    ) -> None:
        """Learn the source from its images; `forward` is the source model with its statistics."""
        # In double: the variance is a small difference of large sums.
        count: Tensor | None = None
        total = squares = torch.empty(0)
        for batch in images or ():
            output = forward(batch.to(device))
            inside, features = _membership(output).double(), _sound_features(output).double()
            parts = inside.sum(1), inside @ features, inside @ (features * features)
            if count is None:
                count, total, squares = parts
            else:
                count, total, squares = count + parts[0], total + parts[1], squares + parts[2]
        if count is None:
            fail("drift features: there are no images of the source")
        many = count.unsqueeze(1)
        mean = total / many.clamp_min(1)
        self.known = count.ge(2).float()
        if float(self.known.sum()) == 0:
            fail(
                "drift features: the source model answers its own images with no class twice; "
                "more of them are needed"
            )
        self.mean = mean.float()
        spread = (squares - many * mean * mean) / (many - 1).clamp_min(1)
        self.variance = spread.clamp_min(0).float()
        self.moving = self.mean.clone()
        self.value = torch.zeros((), device=self.mean.device)

    @torch.no_grad()
    def observe(self, answered: Output) -> None:
        """Take in the answer to a batch."""
        inside = _membership(answered)
        count = inside.sum(1)
        seen = count.gt(0).float() * self.known
        far = (self.moving - self.mean).square_().div_(self.variance + 1e-6).mean(1)
        mean = (far * seen).sum() / seen.sum().clamp_min(1)
        self.value.copy_(1 - torch.exp(-mean))
        batch = inside @ _sound_features(answered) / count.clamp_min(1).unsqueeze(1)
        moved = self.moving * self._keep + batch * (1 - self._keep)
        self.moving.copy_(torch.where(seen.unsqueeze(1).gt(0), moved, self.moving))

    @torch.no_grad()
    def reset(self) -> None:
        self.moving.copy_(self.mean)
        self.value.zero_()


def _membership(output: Output) -> Tensor:
    """[classes, N], 1 where an image was answered with a class and the answer is finite."""
    assert output.features is not None
    logits = output.logits
    sound = torch.isfinite(logits).all(1).logical_and(torch.isfinite(output.features).all(1))
    classes = torch.arange(logits.shape[1], device=logits.device)
    inside = classes.unsqueeze(1).eq(logits.argmax(1).unsqueeze(0))
    return inside.logical_and(sound.unsqueeze(0)).float()


def _sound_features(output: Output) -> Tensor:
    assert output.features is not None
    return torch.nan_to_num(output.features.float(), 0, 0, 0)


DRIFTS: dict[str, Callable[[SimpleNamespace], FeatureDrift]] = {"features": FeatureDrift}
