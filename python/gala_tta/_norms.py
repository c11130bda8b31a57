"""Whose statistics batch normalisation uses: the modes of gala/model/norm.h on modules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from gala_tta import _core
from gala_tta._device_norms import KernelForward, kernel_forward
from gala_tta._parts import fail

_BatchNorm = nn.modules.batchnorm._BatchNorm
_STATISTICS = ("running_mean", "running_var")


@dataclass(frozen=True)
class Mode:
    """A mode with its numbers: source, batch, blend, running, adaptive or balanced."""

    name: str
    weight: float = 0.5
    momentum: float = 0.1
    gradient: bool = False
    horizon: float = 200.0
    tolerance: float = 0.1
    common: float = 0.0

    @staticmethod
    def parse(text: str) -> Mode:
        """Read a mode as it is written everywhere; nothing is `source`."""
        return Mode(*_core.parse_norm(text)) if text else Mode("source")

    @property
    def keeps_statistics(self) -> bool:
        """Whether statistics change while the network answers."""
        return self.name in ("running", "adaptive", "balanced")


def _shape(input: Tensor) -> list[int]:
    return [1, -1] + [1] * (input.dim() - 2)


def _dims(input: Tensor) -> list[int]:
    return [d for d in range(input.dim()) if d != 1]


def _blended(input: Tensor, mean: Tensor, var: Tensor, weight: float) -> tuple[Tensor, Tensor]:
    """Return weight · batch + (1 - weight) · running, differentiable in the input."""
    batch_var, batch_mean = torch.var_mean(input.to(mean.dtype), _dims(input), correction=0)
    return batch_mean * weight + mean * (1 - weight), batch_var * weight + var * (1 - weight)


def _mixed(first: Tensor, second: Tensor, share: Tensor) -> Tensor:
    return first + (second - first) * share


def _weight(
    mean: Tensor, var: Tensor, source: tuple[Tensor, Tensor], tolerance: float, epsilon: float
) -> Tensor:
    """Return how much of statistics is used in place of the source's."""
    wide = source[1] + epsilon
    apart = (mean - source[0]).square() / wide
    ratio = ((var + epsilon) / wide).log()
    distance = (apart + ratio.square() * 0.5).mean()
    return distance / (distance + tolerance) if tolerance > 0 else torch.ones_like(distance)


def _normalised(module: _BatchNorm, input: Tensor, mean: Tensor, var: Tensor) -> Tensor:
    factor = torch.rsqrt(var + module.eps)
    if module.weight is not None:
        factor = module.weight * factor
    offset = -mean * factor if module.bias is None else module.bias - mean * factor
    shape = _shape(input)
    result = torch.addcmul(offset.view(shape), input.to(factor.dtype), factor.view(shape))
    return result.to(input.dtype)


class Norms:
    """The batch norms of a module, in a mode until they are released."""

    def __init__(
        self, module: nn.Module, mode: Mode, classes: int = 0, kernels: bool = True
    ) -> None:
        self._modules: list[_BatchNorm] = [
            m for m in module.modules() if isinstance(m, _BatchNorm) and m.running_mean is not None
        ]
        # Under `source` and `batch`, where they lie on a GPU.
        self._kernels: list[KernelForward | None] = [
            kernel_forward(m) if kernels else None for m in self._modules
        ]
        self._statistics: list[tuple[Tensor, Tensor]] = []
        for each in self._modules:
            assert isinstance(each.running_mean, Tensor)
            assert isinstance(each.running_var, Tensor)
            self._statistics.append((each.running_mean, each.running_var))
        self._source = [(m.clone(), v.clone()) for m, v in self._statistics]
        self._by_class: list[tuple[Tensor, Tensor]] = []
        if mode.name == "balanced":
            if classes == 0:
                fail(
                    "norm balanced asks how many classes there are, and the module has no last "
                    "linear layer (classifier names it)"
                )
            self._by_class = [
                (torch.stack([m] * classes), torch.stack([v] * classes)) for m, v in self._source
            ]
        self._source_by_class = [(m.clone(), v.clone()) for m, v in self._by_class]
        #: The class that each image of a pass seems to be of, for `balanced`.
        self.labels: Tensor | None = None
        self.mode = mode
        device = self._source[0][0].device if self._source else torch.device("cpu")
        #: How many images of the stream are worth one that is drawn by itself, for `adaptive`.
        self.spread = torch.ones((), device=device)
        self._update = True
        #: How much of other statistics than the source's each norm used, while somebody listens.
        self.used: list[Tensor] | None = None
        self._put(mode)

    def __len__(self) -> int:
        return len(self._modules)

    @property
    def on_kernels(self) -> int:
        """How many of them kernels of our own computed when they were asked last."""
        return sum(each is not None and each.taken for each in self._kernels)

    def notes(self) -> list[str]:
        """Return what a user should know of them after a batch."""
        there = [each for each in self._kernels if each is not None]
        missed = any(each.missed_by_layout for each in there)
        if self.mode.name not in ("source", "batch") or self.on_kernels or not missed:
            return []
        return [
            "this package's kernels compute no batch norm, since maps are not channels-last: "
            "module.to(memory_format=torch.channels_last), and images in that format, make them so"
        ]

    @property
    def moving(self) -> list[Tensor]:
        """The statistics that the mode moves, in place."""
        if not self.mode.keeps_statistics:
            return []
        return [each for pair in self._statistics + self._by_class for each in pair]

    @property
    def asks_classes(self) -> bool:
        """Whether a pass must know of which class its images seem to be."""
        return self.mode.name == "balanced" and self._update

    @contextmanager
    def knowing(self, logits: Tensor) -> Iterator[None]:
        """Take the classes of images from an answer for a while; none where it is not finite."""
        classes = self._by_class[0][0].shape[0] if self._by_class else logits.shape[1]
        if logits.shape[1] != classes:
            fail(f"the module answers with {logits.shape[1]} classes, and its head has {classes}")
        broken = torch.isfinite(logits).all(1).logical_not()
        self.labels = logits.argmax(1).masked_fill(broken, -1)
        try:
            yield
        finally:
            self.labels = None

    def copies(self) -> list[Tensor]:
        """Return copies of the statistics that move."""
        return [each.clone() for each in self.moving]

    def source_copies(self) -> list[Tensor]:
        """Return the source's statistics, where they move."""
        if not self.mode.keeps_statistics:
            return []
        return [each.clone() for pair in self._source + self._source_by_class for each in pair]

    def put_back(self, copies: list[Tensor]) -> None:
        """Write statistics that `copies` gave."""
        with torch.no_grad():
            for each, copy in zip(self.moving, copies, strict=True):
                each.copy_(copy)

    @contextmanager
    def still(self, still: bool = True) -> Iterator[None]:
        """Let no pass move the statistics for a while."""
        before, self._update = self._update, not still and self._update
        try:
            yield
        finally:
            self._update = before

    @contextmanager
    def as_source(self, name: str = "source") -> Iterator[None]:
        """Use the source's statistics for a while, or the batch's, whatever the mode."""
        self._put(Mode(name), self._source)
        try:
            with self.still():
                yield
        finally:
            self._put(self.mode)

    @contextmanager
    def holding(self, statistics: list[Tensor]) -> Iterator[None]:
        """Use other running statistics for a while, which may move."""
        if not statistics:
            yield
            return
        own = self._statistics, self._by_class
        pairs = list(zip(statistics[::2], statistics[1::2], strict=True))
        self._statistics, self._by_class = pairs[: len(own[0])], pairs[len(own[0]) :]
        self._put(self.mode)
        try:
            yield
        finally:
            self._statistics, self._by_class = own
            self._put(self.mode)

    @contextmanager
    def listening(self) -> Iterator[list[Tensor]]:
        """Collect how much of other statistics than the source's each norm uses, 0 to 1.

        Nothing, where the mode is another than `adaptive`.
        """
        used: list[Tensor] = []
        self.used = used
        try:
            yield used
        finally:
            self.used = None

    def release(self) -> None:
        """Leave the modules as they were, with the source's statistics."""
        with torch.no_grad():
            for now, then in zip(self._statistics, self._source, strict=True):
                now[0].copy_(then[0])
                now[1].copy_(then[1])
        self._kernels = [None] * len(self._modules)
        self._put(Mode("source"))

    def _put(self, mode: Mode, statistics: list[tuple[Tensor, Tensor]] | None = None) -> None:
        pairs = self._statistics if statistics is None else statistics
        by_class: Sequence[tuple[Tensor, Tensor] | None] = self._by_class or [None] * len(pairs)
        for module, pair, source, classes, kernels in zip(
            self._modules, pairs, self._source, by_class, self._kernels, strict=True
        ):
            # A norm without statistics of its own takes the batch's, by PyTorch's own rule.
            values = (None, None) if mode.name == "batch" else pair
            for name, value in zip(_STATISTICS, values, strict=True):
                module._buffers[name] = value
            module.__dict__.pop("forward", None)
            if mode.name in ("blend", "running", "adaptive", "balanced"):
                module.__dict__["forward"] = _Forward(self, module, mode, source, classes)
            elif kernels is not None:
                module.__dict__["forward"] = kernels


class _Forward:
    """What takes the place of a norm's own forward under every mode but `source` and `batch`."""

    def __init__(
        self,
        norms: Norms,
        module: _BatchNorm,
        mode: Mode,
        source: tuple[Tensor, Tensor],
        by_class: tuple[Tensor, Tensor] | None,
    ) -> None:
        self._norms, self._module, self._mode, self._source = norms, module, mode, source
        self._by_class = by_class

    def __call__(self, input: Tensor) -> Tensor:
        module, mode = self._module, self._mode
        mean: Any = module.running_mean
        var: Any = module.running_var
        if mode.name == "blend":
            return _normalised(module, input, *_blended(input, mean, var, mode.weight))
        update = self._norms._update
        if mode.name == "adaptive":
            return _normalised(module, input, *self._adapted(input, mean, var, update))
        if mode.name == "balanced" and update:
            assert self._by_class is not None
            assert self._norms.labels is not None
            moved = _balanced(input, self._norms.labels, self._by_class, (mean, var), mode)
            return _normalised(module, input, *moved)
        if mode.gradient and update:
            moved = _blended(input, mean, var, mode.momentum)
            with torch.no_grad():
                usable = torch.isfinite(moved[0]).logical_and(torch.isfinite(moved[1]))
                mean.copy_(torch.where(usable, moved[0], mean))
                var.copy_(torch.where(usable, moved[1], var))
            return _normalised(module, input, *moved)
        if update:
            _move(input, mean, var, mode.momentum)
        # Copies, since backward needs these values even if another batch passes before it.
        return functional.batch_norm(
            input, mean.clone(), var.clone(), module.weight, module.bias, False, 0.0, module.eps
        )

    def _adapted(
        self, input: Tensor, mean: Tensor, var: Tensor, update: bool
    ) -> tuple[Tensor, Tensor]:
        """Take the batch in, and mix what comes of it with the source's by their distance."""
        module, mode = self._module, self._mode
        running = mean.clone(), var.clone()
        batch_var, batch_mean = torch.var_mean(input.to(mean.dtype), _dims(input), correction=0)
        with torch.no_grad():
            usable = torch.isfinite(batch_mean).logical_and(torch.isfinite(batch_var))
            share = torch.full_like(batch_mean, input.shape[0] / mode.horizon)
            share = (share / self._norms.spread).clamp_max(1) * usable
        # What is not finite would stay so, also times 0.
        next_mean, next_var = (
            _mixed(then, now.nan_to_num(0.0, 0.0, 0.0), share)
            for then, now in zip(running, (batch_mean, batch_var), strict=True)
        )
        with torch.no_grad():
            if update:
                mean.copy_(next_mean)
                var.copy_(next_var)
            weight = _weight(next_mean, next_var, self._source, mode.tolerance, module.eps)
            if self._norms.used is not None:
                self._norms.used.append(weight)
        return (
            _mixed(self._source[0], next_mean, weight),
            _mixed(self._source[1], next_var, weight),
        )


@torch.no_grad()
def _move(input: Tensor, mean: Tensor, var: Tensor, momentum: float) -> None:
    """Move running statistics; a single value a channel has no variance, then the mean alone."""
    has_variance = input.numel() > input.shape[1]
    batch_var, batch_mean = torch.var_mean(
        input.detach().to(mean.dtype), _dims(input), correction=1 if has_variance else 0
    )
    # A broken picture must not stay in the statistics for ever.
    usable = torch.isfinite(batch_mean).logical_and(torch.isfinite(batch_var))
    for running, batch in ((mean, batch_mean), (var, batch_var)):
        if running is mean or has_variance:
            moved = running.mul(1 - momentum).add_(batch, alpha=momentum)
            running.copy_(torch.where(usable, moved, running))


def _balanced(
    input: Tensor,
    labels: Tensor,
    by_class: tuple[Tensor, Tensor],
    running: tuple[Tensor, Tensor],
    mode: Mode,
) -> tuple[Tensor, Tensor]:
    """Take a batch into the statistics of its classes, and mix them: gala/model/balanced_norm.h."""
    dtype, common = running[0].dtype, mode.common
    mean, var = (each.to(torch.double, copy=True) for each in by_class)
    maps = input.to(dtype).unsqueeze(2) if input.dim() == 2 else input.to(dtype)
    within, middle = torch.var_mean(maps, list(range(2, maps.dim())), correction=0)
    usable = labels.ge(0).logical_and(torch.isfinite(middle).all(1))
    usable = usable.logical_and(torch.isfinite(within).all(1))
    within, middle = (
        torch.where(usable.unsqueeze(1), each, torch.zeros((), dtype=dtype, device=each.device)).to(
            torch.double
        )
        for each in (within, middle)
    )
    numbers = torch.arange(mean.shape[0], device=labels.device).unsqueeze(1)
    members = numbers.eq(labels).logical_and(usable).to(torch.double)

    number = members.sum(1, keepdim=True)
    share = number.clamp_min(1).reciprocal().clamp_max(mode.momentum)
    apart = middle - mean.index_select(0, labels.clamp_min(0))
    step = share * torch.matmul(members, apart)
    square = share * torch.matmul(members, within + apart.square())

    present = number.gt(0).to(torch.double)
    kinds = present.sum().clamp_min(1)

    def over_present(values: Tensor) -> Tensor:
        return (values * present).sum(0) / kinds

    next_mean = mean + step * (1 - common) + over_present(step) * common
    alone = var + (square - share * number * var - step.square()) * (1 - common)
    all_together = over_present(square - step.square()) - over_present(share * number) * alone
    next_var = alone + all_together * common
    all_mean = next_mean.mean(0)
    all_var = next_var.mean(0) + next_mean.var(0)
    with torch.no_grad():
        for place, values in zip(
            (*by_class, *running), (next_mean, next_var, all_mean, all_var), strict=True
        ):
            rounded = values.to(place.dtype)
            place.copy_(torch.where(torch.isfinite(rounded), rounded, place))
    return all_mean.to(dtype), all_var.to(dtype)
