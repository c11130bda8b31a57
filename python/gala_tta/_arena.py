"""Every parameter that may move as a view into one flat buffer, and the layers they are in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gala_tta import _core
from gala_tta._parts import fail

_NORMS = (
    nn.modules.batchnorm._NormBase,
    nn.LayerNorm,
    nn.GroupNorm,
    nn.LocalResponseNorm,
)


@dataclass
class Slot:
    """A parameter with its place in the network."""

    name: str
    module: str
    parameter: nn.Parameter
    is_norm: bool
    in_head: bool
    block: int = 0


def unwrapped(module: nn.Module) -> nn.Module:
    """Return the module below torch.compile and data-parallel wrappers."""
    while True:
        inner = getattr(module, "_orig_mod", None)
        if inner is None and isinstance(
            module, nn.DataParallel | nn.parallel.DistributedDataParallel
        ):
            inner = module.module
        if not isinstance(inner, nn.Module):
            return module
        module = inner


def find_head(module: nn.Module, named: str | nn.Module | None) -> tuple[str, nn.Module] | None:
    """Return the classifier: the one that was named, else the last linear layer."""
    modules = dict(module.named_modules())
    if isinstance(named, nn.Module):
        for name, each in modules.items():
            if each is named:
                return name, each
        fail("the classifier that was given is no part of the module")
    if named is not None:
        if not isinstance(named, str):
            fail(f"the classifier must be a module or its name, not {type(named).__name__}")
        if named not in modules:
            fail(
                f'the module has no part "{named}"'
                f"{_core.suggestion(named, [name for name in modules if name])}"
            )
        return named, modules[named]
    linear = [(name, each) for name, each in modules.items() if isinstance(each, nn.Linear)]
    return linear[-1] if linear else None


def _is_norm(module: nn.Module) -> bool:
    return isinstance(module, _NORMS) or bool(re.search(r"Norm(\dd)?$", type(module).__name__))


def slots_of(module: nn.Module, head: nn.Module | None) -> list[Slot]:
    """Return every parameter once, in the order in which modules were registered."""
    of_head = {id(p) for p in head.parameters()} if head is not None else set()
    owners = dict(module.named_modules())
    slots = []
    for name, parameter in module.named_parameters():
        owner = owners[name.rpartition(".")[0]]
        # A parameter that is shared with the head moves with its first place.
        in_head = id(parameter) in of_head and owner is head
        slots.append(
            Slot(name, _core.module_of_parameter(name), parameter, _is_norm(owner), in_head)
        )
    blocks = _core.blocks_of(
        [s.name for s in slots], [s.parameter.numel() for s in slots], [s.in_head for s in slots]
    )
    for slot, block in zip(slots, blocks, strict=True):
        slot.block = block
    return slots


def _fits(slot: Slot, patterns: Sequence[str]) -> bool:
    return any(
        _core.matches_pattern(slot.name, p) or _core.matches_pattern(slot.module, p)
        for p in patterns
    )


def _check_patterns(slots: Sequence[Slot], patterns: Sequence[str], what: str) -> None:
    for pattern in patterns:
        if not any(_fits(slot, [pattern]) for slot in slots):
            known = sorted({part for s in slots for part in (s.name, s.module)})
            near = _core.nearest(pattern.replace("*", "").replace("?", "").rstrip("."), known)
            names = near or f"{slots[0].name}, {slots[-1].name}"
            fail(f'the pattern "{pattern}" matches no parameter of {what} (nearest names: {names})')


@dataclass
class Filter:
    """Which parameters may adapt at all."""

    head: bool
    norms: bool
    others: bool
    skip: list[str]
    include: list[str]
    exclude: list[str]


def adapted_slots(slots: Sequence[Slot], filter: Filter, granularity: str, what: str) -> list[Slot]:
    """Return the parameters that the filter lets pass. What the user froze stays frozen."""
    _check_patterns(slots, filter.include, what)
    _check_patterns(slots, filter.exclude, what)
    passed = []
    for slot in slots:
        if not slot.parameter.requires_grad:
            continue
        if slot.in_head and (not filter.head or granularity == "block"):
            continue
        if not (filter.norms if slot.is_norm else filter.others):
            continue
        if filter.include and not _fits(slot, filter.include):
            continue
        if _fits(slot, filter.exclude) or _fits(slot, filter.skip):
            continue
        passed.append(slot)
    if not passed:
        yes = {True: "yes", False: "no"}
        frozen = sum(not slot.parameter.requires_grad for slot in slots)
        fail(
            f"no parameter of {what} is left to adapt (partition {granularity}, "
            f"head {yes[filter.head]}, norms {yes[filter.norms]}, others {yes[filter.others]}, "
            f"include [{', '.join(filter.include)}], exclude [{', '.join(filter.exclude)}]; "
            f"{len(slots)} parameters, {frozen} of them frozen)"
        )
    return passed


def partition(slots: Sequence[Slot], granularity: str) -> list[tuple[str, list[int]]]:
    """Return the layers: names, and the numbers of their tensors."""
    layers: dict[str, list[int]] = {}
    for number, slot in enumerate(slots):
        name = {"tensor": slot.name, "module": slot.module, "block": f"block{slot.block}"}
        layers.setdefault(name[granularity], []).append(number)
    return list(layers.items())


class Arena:
    """All parameters that may adapt, in one flat float32 buffer.

    The parameters stay the module's own objects; only their data lies elsewhere until `release`.
    """

    def __init__(self, slots: Sequence[Slot], every: Sequence[Slot]) -> None:
        self.slots = list(slots)
        device = slots[0].parameter.device
        for slot in slots:
            if slot.parameter.dtype != torch.float32:
                fail(f"parameter {slot.name} is not float32")
            if slot.parameter.device != device:
                fail(f"parameter {slot.name} is on another device")
        begins, size = _core.lay_out([s.parameter.numel() for s in slots])
        self.tensors: list[tuple[str, list[int], list[int]]] = []
        self._begins = begins
        with torch.no_grad():
            for slot in slots:
                data = slot.parameter.data
                dense = data if _is_dense(data) else data.contiguous()
                self.tensors.append((slot.name, list(data.shape), list(dense.stride())))
            self.values = torch.zeros(size, device=device)
            self._original = [slot.parameter.data for slot in slots]
            for number, data in enumerate(self._original):
                self.view(self.values, number).copy_(data)
        self.source = self.values.clone()
        self._flags = [(s.parameter, s.parameter.requires_grad, s.parameter.grad) for s in every]
        for parameter, _, _ in self._flags:
            parameter.requires_grad_(False)
            parameter.grad = None
        for number, slot in enumerate(self.slots):
            slot.parameter.data = self.view(self.values, number)
            slot.parameter.requires_grad_(True)

    @property
    def device(self) -> torch.device:
        """Where the parameters lie."""
        return self.values.device

    def view(self, buffer: Tensor, number: int) -> Tensor:
        """Return one tensor's part of a buffer of this layout."""
        _, sizes, strides = self.tensors[number]
        return buffer.as_strided(sizes, strides, buffer.storage_offset() + self._begins[number])

    def views(self, buffer: Tensor) -> list[Tensor]:
        """Return every tensor's part of a buffer of this layout."""
        return [self.view(buffer, number) for number in range(len(self.tensors))]

    def take_gradients(self) -> list[Tensor | None]:
        """Take the gradients out of the parameters; None stands for zeros."""
        taken: list[Tensor | None] = []
        for number, slot in enumerate(self.slots):
            gradient, slot.parameter.grad = slot.parameter.grad, None
            if gradient is not None:
                _, sizes, strides = self.tensors[number]
                alike = gradient.dtype == torch.float32 and all(
                    size == 1 or mine == theirs
                    for size, mine, theirs in zip(sizes, strides, gradient.stride(), strict=True)
                )
                if not alike:
                    own = torch.empty_strided(sizes, strides, device=self.device)
                    gradient = own.copy_(gradient)
            taken.append(gradient)
        return taken

    def drop_gradients(self) -> None:
        """Leave no gradient behind."""
        for slot in self.slots:
            slot.parameter.grad = None

    @contextmanager
    def holding(self, buffer: Tensor) -> Iterator[None]:
        """Put the numbers of another buffer into the network for a while."""
        try:
            for number, slot in enumerate(self.slots):
                slot.parameter.data = self.view(buffer, number)
            yield
        finally:
            for number, slot in enumerate(self.slots):
                slot.parameter.data = self.view(self.values, number)

    def release(self) -> None:
        """Give the module back what it had: the source's numbers, flags and gradients."""
        for slot, data in zip(self.slots, self._original, strict=True):
            slot.parameter.data = data
        for parameter, flag, gradient in self._flags:
            parameter.requires_grad_(flag)
            parameter.grad = gradient


def _is_dense(tensor: Tensor) -> bool:
    """Whether its strides name every element of a block of memory once."""
    expected = 1
    for size, stride in sorted(
        ((n, s) for n, s in zip(tensor.shape, tensor.stride(), strict=True) if n != 1),
        key=lambda pair: pair[1],
    ):
        if stride != expected:
            return False
        expected *= size
    return True
