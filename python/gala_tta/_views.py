"""A batch seen otherwise: the looks of gala/view.

`augment` and `patches` are the library's code, on the host or where the package has its kernels;
`augmix` and `flip` are PyTorch's operations, where the images lie.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from gala_tta import _core
from gala_tta._augmix import augmixed
from gala_tta._device import heart_for, stream_of
from gala_tta._parts import fail, require


class View:
    """Drawing and looking are apart: `draw` once a step, then any number of looks."""

    # Why a look cannot be part of a captured graph; nothing where it can.
    uncaptured = "the view is made on the host"

    def __init__(self) -> None:
        self._seed = self._number = 0
        self._mean: Sequence[float] = (0.0, 0.0, 0.0)
        self._std: Sequence[float] = (1.0, 1.0, 1.0)
        # The GPU's own, where there is one.
        self._there: Any = None

    def attach(self, device: torch.device, mean: Sequence[float], std: Sequence[float]) -> None:
        """Learn where images lie and how they were preprocessed, before anything else."""
        self._mean, self._std = _three("mean", mean), _three("std", std)
        require(min(self._std) > 0, f"std must be greater than 0, not {min(self._std)}")
        heart = heart_for(device)
        if device.type == "cuda" and heart is not _core:
            self._there = self._on_gpu(heart, device.index or 0)
            if self._there is not None:
                self.uncaptured = ""

    def _on_gpu(self, heart: Any, device: int) -> Any:
        return None

    def draw(self, seed: int, number: int, count: int) -> None:
        """Draw what the looks of a step need; it depends on seed and number alone."""
        self._seed, self._number = seed, number
        if self._there is not None:
            self._there.draw(seed, number, count)

    def look(self, images: Tensor, which: int = 0) -> Tensor:
        """Return images [N, 3, H, W] seen otherwise, preprocessed as they were."""
        raise NotImplementedError


def _three(name: str, numbers: Sequence[float]) -> list[float]:
    """Return one number for each channel: of an array, a tensor or a list."""
    try:
        three = [float(each) for each in numbers]
    except (TypeError, ValueError):
        fail(f"{name} must be three numbers, not {numbers!r}")
    require(len(three) == 3, f"{name} must be three numbers, not {len(three)}")
    return three


def _checked(images: Tensor) -> Tensor:
    shaped = images.dim() == 4 and images.shape[1] == 3 and images.shape[2] > 0
    if not shaped or images.dtype != torch.float32 or images.shape[3] < 1:
        fail(
            "a view takes images [N, 3, H, W] in float32, not "
            f"{str(images.dtype).removeprefix('torch.')} {list(images.shape)}"
        )
    return images.detach()


def _dense(images: Tensor) -> tuple[Tensor, bool]:
    """Return images that are dense in their format, and whether channels come last."""
    if images.is_contiguous():
        return images, False
    last = images.contiguous(memory_format=torch.channels_last)
    return last, True


class Augment(View):
    def __init__(self, o: SimpleNamespace) -> None:
        super().__init__()
        self._o = o

    def _on_gpu(self, heart: Any, device: int) -> Any:
        o = self._o
        reflect = o.padding == "reflect"
        return heart.Augment(device, o.soft, reflect, o.blur, o.noise, self._mean, self._std)

    def look(self, images: Tensor, which: int = 0) -> Tensor:
        images = _checked(images)
        if self._there is not None and images.shape[0]:
            dense, last = _dense(images)
            count, _, height, width = dense.shape
            result = torch.empty_like(dense)
            work = torch.empty(4 * count * height * width, device=dense.device)
            parts = torch.empty(
                self._there.parts(count, height, width), dtype=torch.double, device=dense.device
            )
            buffers = [each.data_ptr() for each in (dense, work, parts, result)]
            self._there.look(which, *buffers, count, height, width, last, stream_of(dense))
            return result
        host = images.cpu().contiguous()
        result = torch.empty_like(host)
        count, _, height, width = host.shape
        if count:
            _core.augment(
                host.data_ptr(),
                result.data_ptr(),
                count,
                height,
                width,
                self._seed,
                self._number,
                which,
                self._o.soft,
                self._o.padding == "reflect",
                self._o.blur,
                self._o.noise,
                self._mean,
                self._std,
                torch.get_num_threads(),
            )
        if images.is_contiguous(memory_format=torch.channels_last):
            result = result.contiguous(memory_format=torch.channels_last)
        return result.to(images.device)


class Augmix(View):
    # It is made where the images lie, and a graph would keep the numbers of its first look.
    uncaptured = "the view takes its numbers from the host at every look"

    def __init__(self, o: SimpleNamespace) -> None:
        super().__init__()
        self._o = o

    def look(self, images: Tensor, which: int = 0) -> Tensor:
        numbers = _core.augmix_numbers(self._seed, self._number, which, self._o.severity)
        return augmixed(_checked(images), numbers, self._mean, self._std)


class Patches(View):
    def __init__(self, o: SimpleNamespace) -> None:
        super().__init__()
        self._grid = o.grid

    def _on_gpu(self, heart: Any, device: int) -> Any:
        return heart.Patches(device, self._grid)

    def look(self, images: Tensor, which: int = 0) -> Tensor:
        images = _checked(images)
        grid = self._grid
        height, width = images.shape[2:]
        if height < grid or width < grid:
            fail(
                f"view patches: {height} x {width} pixels cannot be cut into {grid} x {grid} "
                "patches"
            )
        tall, wide = height // grid * grid, width // grid * grid
        if (tall, wide) == (height, width):
            return self._shuffled(images, which)
        smaller = _resized(images, tall, wide)
        return _resized(self._shuffled(smaller, which), height, width)

    def _shuffled(self, images: Tensor, which: int) -> Tensor:
        count, channels, height, width = images.shape
        if self._there is not None and count:
            dense, last = _dense(images)
            result = torch.empty_like(dense)
            buffers = [dense.data_ptr(), result.data_ptr()]
            self._there.look(which, *buffers, count, height, width, last, stream_of(dense))
            return result
        grid, tall, wide = self._grid, height // self._grid, width // self._grid
        orders = torch.tensor(
            _core.patch_orders(self._seed, self._number, which, count, grid), dtype=torch.long
        ).to(images.device)
        patches = images.view(count, channels, grid, tall, grid, wide).permute(0, 2, 4, 1, 3, 5)
        patches = patches.reshape(count, grid * grid, channels, tall, wide)
        rows = torch.arange(count, device=images.device).unsqueeze(1)
        moved = patches[rows, orders].view(count, grid, grid, channels, tall, wide)
        return moved.permute(0, 3, 1, 4, 2, 5).reshape(images.shape)


def _resized(images: Tensor, height: int, width: int) -> Tensor:
    return functional.interpolate(
        images, (height, width), mode="bilinear", antialias=True, align_corners=False
    )


class Flip(View):
    uncaptured = ""

    def __init__(self, o: SimpleNamespace) -> None:
        super().__init__()

    def look(self, images: Tensor, which: int = 0) -> Tensor:
        return _checked(images).flip(3)


VIEWS: dict[str, Callable[[SimpleNamespace], View]] = {
    "augment": Augment,
    "augmix": Augmix,
    "patches": Patches,
    "flip": Flip,
}
