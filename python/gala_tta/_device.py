"""The heart for the device that the parameters lie on."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from gala_tta import _core
from gala_tta._arena import Arena


class AnyStepper(Protocol):
    """What makes steps: the heart's own, or the host's for a device that it does not know."""

    def begin(self) -> None: ...
    def measure(self, gradients: Sequence[int], gate: int) -> None: ...
    def recall(self, gradients: Sequence[int]) -> None: ...
    def move(
        self, loss: float, probed: Sequence[float], images: float, moved: float
    ) -> _core.StepRecord: ...
    def pause(self, loss: float) -> _core.StepRecord: ...
    def reset(self) -> None: ...
    def restart(self) -> None: ...
    def remember(self, target: Any, /) -> None: ...
    def use_stream(self, stream: int, /) -> None: ...
    @property
    def idle(self) -> bool: ...
    @property
    def probe(self) -> str: ...
    @property
    def can_be_captured(self) -> bool: ...


def heart_for(device: torch.device) -> Any:
    """Return the module whose selectors and steppers fit a device.

    The GPU's is loaded here and nowhere else, so that nobody without one needs it.
    """
    if device.type != "cuda":
        return _core
    try:
        return importlib.import_module("gala_tta._cuda")
    except ImportError:
        return _core


def stream_of(tensor: Tensor) -> int:
    """Return PyTorch's current stream where a tensor lies, as the heart takes it."""
    return int(torch.cuda.current_stream(tensor.device).cuda_stream)


def make_stepper(
    arena: Arena,
    layers: list[tuple[str, list[int]]],
    optimizer: str,
    selector: _core.Selector,
    run: str,
    notes: list[str],
) -> AnyStepper:
    """Make the stepper over an arena's memory; what a user should know of it goes to `notes`."""
    device = arena.device
    heart = heart_for(device)
    threads = torch.get_num_threads()
    if device.type == "cpu" or heart is not _core:
        index = device.index or 0
        values = arena.values.data_ptr()
        stepper: AnyStepper = heart.Stepper(
            arena.tensors, values, layers, optimizer, selector, run, threads, index
        )
        return stepper
    notes.append(
        f"this build has no passes for {device.type}: every step goes to the host and back"
    )
    return HostStepper(arena, layers, optimizer, selector, run)


class HostStepper:
    """Steps made on the host for parameters that lie elsewhere: slow, and with the same bits."""

    can_be_captured = False

    def __init__(
        self,
        arena: Arena,
        layers: list[tuple[str, list[int]]],
        optimizer: str,
        selector: _core.Selector,
        run: str,
    ) -> None:
        self._arena = arena
        self._values = arena.values.cpu()
        self._gradients: list[Tensor | None] = []
        self._gate = torch.zeros(1)
        self._stepper = _core.Stepper(
            arena.tensors,
            self._values.data_ptr(),
            layers,
            optimizer,
            selector,
            run,
            torch.get_num_threads(),
            0,
        )

    def begin(self) -> None:
        self._values.copy_(self._arena.values)
        self._stepper.begin()

    def take(self, gradients: list[Tensor | None], gate: Tensor) -> None:
        """Bring a pass to the host and measure it there."""
        self._gate = gate.cpu()
        self._gradients = []
        for (_, sizes, strides), each in zip(self._arena.tensors, gradients, strict=True):
            mine = None if each is None else torch.empty_strided(sizes, strides).copy_(each)
            self._gradients.append(mine)
        self._stepper.measure(
            [0 if each is None else each.data_ptr() for each in self._gradients],
            self._gate.data_ptr(),
        )

    def measure(self, gradients: Sequence[int], gate: int) -> None:
        raise NotImplementedError("gradients elsewhere are taken as tensors")

    def recall(self, gradients: Sequence[int]) -> None:
        raise NotImplementedError("nothing is captured here")

    def move(
        self, loss: float, probed: Sequence[float], images: float, moved: float
    ) -> _core.StepRecord:
        record = self._stepper.move(loss, probed, images, moved)
        if not record.refused:
            self._arena.values.copy_(self._values)
        return record

    def pause(self, loss: float) -> _core.StepRecord:
        return self._stepper.pause(loss)

    def reset(self) -> None:
        self._values.copy_(self._arena.values)
        self._stepper.reset()

    def restart(self) -> None:
        self._values.copy_(self._arena.values)
        self._stepper.restart()

    def remember(self, target: Any, /) -> None:
        self._stepper.remember(target)

    def use_stream(self, stream: int, /) -> None:
        pass

    @property
    def idle(self) -> bool:
        return self._stepper.idle

    @property
    def probe(self) -> str:
        return self._stepper.probe
