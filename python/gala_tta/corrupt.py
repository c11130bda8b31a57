"""The 19 corruptions of the robustness benchmarks, for pictures of 32 x 32 and 224 x 224 pixels.

>>> from gala_tta import corrupt
>>> foggy = corrupt.apply(images, "fog", severity=5, seed=0)

What comes out equals `gala corrupt` (with `--quality 0`) bit for bit. Pictures are bytes (uint8),
NumPy arrays or torch tensors, one or many: [N, 32, 32, 3] or [N, 3, 32, 32], or 224 in place of 32.
The size says whose constants are meant: CIFAR-10-C's or ImageNet-C's. The channels are where the 3
is; at these sizes there is no doubt. What comes back has the type, the shape and the device of what
was given.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Sequence
from typing import Any, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray

# Its errors are those of the heart, which must be there first.
from gala_tta import _core  # noqa: F401

try:
    from gala_tta import _corrupt
except ImportError as problem:
    raise ImportError(
        "gala_tta.corrupt needs libjpeg, when the package is built (Debian: libjpeg-dev) and when "
        f"it is used (libjpeg62-turbo): install it, and the package again ({problem})"
    ) from problem

__all__ = [
    "BENCHMARK",
    "EXTRA",
    "NAMES",
    "SEVERITIES",
    "SIDE",
    "SIDES",
    "Corruption",
    "apply",
    "describe",
]

_DESCRIPTIONS: dict[str, str] = dict(_corrupt.describe_corruptions())

#: The names of all 19, those of the benchmark first.
NAMES: tuple[str, ...] = tuple(_DESCRIPTIONS)
#: The 15 of the benchmark (CIFAR-10-C), in its order.
BENCHMARK: tuple[str, ...] = NAMES[: _corrupt.BENCHMARK_CORRUPTIONS]
#: The other four, meant for tuning.
EXTRA: tuple[str, ...] = NAMES[_corrupt.BENCHMARK_CORRUPTIONS :]
SEVERITIES: tuple[int, ...] = (1, 2, 3, 4, 5)
#: Height and width that CIFAR's constants are for.
SIDE = 32
#: Heights and widths that constants are for: CIFAR's and ImageNet's.
SIDES: tuple[int, ...] = (SIDE, 224)

Pictures = TypeVar("Pictures", NDArray[np.uint8], torch.Tensor)
_Bytes = NDArray[np.uint8]


def describe() -> dict[str, str]:
    """What each corruption does, by its name."""
    return dict(_DESCRIPTIONS)


def _to_rows(array: _Bytes) -> tuple[_Bytes, bool]:
    """The pictures as [N, side, side, 3], contiguous, and whether their channels came first."""
    shape = array.shape
    rows = array[None] if array.ndim == 3 else array
    for side in SIDES:
        if rows.ndim == 4 and rows.shape[1:] == (side, side, 3):
            return np.ascontiguousarray(rows), False
        if rows.ndim == 4 and rows.shape[1:] == (3, side, side):
            return np.ascontiguousarray(rows.transpose(0, 2, 3, 1)), True
    raise ValueError(
        f"pictures of shape {list(shape)} cannot be corrupted: expected 32 x 32 or 224 x 224 "
        "pixels, for which the published constants are, as [N, 32, 32, 3], [N, 3, 32, 32], "
        "or one without N"
    )


def _whole(name: str, value: Any, least: int, most: int) -> int:
    """Return a whole number that the library can hold."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, not {value!r}") from None
    if not least <= number <= most:
        raise ValueError(f"{name} must be from {least} to {most}, not {number}")
    return number


class _Cores:
    """One of C++'s for each size of pictures, made when pictures of that size come."""

    def __init__(
        self, name: str, severity: int, seed: int, photographs: Sequence[_Bytes] = ()
    ) -> None:
        if not isinstance(name, str):
            raise TypeError(f"a corruption is named by one of NAMES, not by {name!r}")
        self._words = (
            name,
            _whole("severity", severity, -(2**31), 2**31 - 1),
            _whole("seed", seed, 0, 2**64 - 1),
        )
        self._photographs = [np.ascontiguousarray(one, np.uint8) for one in photographs]
        self._made: dict[int, _corrupt.Corruptor] = {}
        self.of(SIDE)  # wrong words are said at once

    def of(self, side: int) -> _corrupt.Corruptor:
        if side not in self._made:
            self._made[side] = _corrupt.Corruptor(*self._words, self._photographs, side)
        return self._made[side]


def _corrupt_array(
    cores: _Cores, array: _Bytes, numbers: NDArray[np.int64] | None, threads: int
) -> _Bytes:
    if array.dtype != np.uint8:
        raise TypeError(f"pictures of {array.dtype} cannot be corrupted: expected uint8, 0 to 255")
    rows, channels_first = _to_rows(array)
    if numbers is None:
        numbers = np.array([_number_of(row) for row in rows], np.int64)
    if numbers.shape != (len(rows),):
        raise ValueError(f"{numbers.size} numbers for {len(rows)} pictures")
    made = np.empty_like(rows)
    cores.of(rows.shape[1]).apply(rows, made, np.ascontiguousarray(numbers, np.int64), threads)
    if channels_first:
        made = np.ascontiguousarray(made.transpose(0, 3, 1, 2))
    return made.reshape(array.shape)


def _number_of(row: _Bytes) -> int:
    """A number for a picture that has none: it depends on its bytes alone."""
    digest = hashlib.blake2b(row.tobytes(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def _corrupt_any(cores: _Cores, pictures: Any, numbers: Any, threads: int) -> Any:
    if isinstance(pictures, torch.Tensor):
        if pictures.dtype != torch.uint8:
            raise TypeError(
                f"pictures of {pictures.dtype} cannot be corrupted: expected torch.uint8, 0 to 255"
            )
        made = _corrupt_array(cores, pictures.detach().cpu().numpy(), numbers, threads)
        return torch.from_numpy(made).to(pictures.device).as_subclass(type(pictures))
    if isinstance(pictures, np.ndarray):
        return _corrupt_array(cores, pictures, numbers, threads)
    if type(pictures).__module__.startswith("PIL."):
        from PIL import Image

        array = np.asarray(pictures.convert("RGB"))
        return Image.fromarray(_corrupt_array(cores, array, numbers, threads))
    raise TypeError(
        f"{type(pictures).__name__} cannot be corrupted: expected a NumPy array, a torch tensor or "
        "a PIL image"
    )


def apply(
    images: Pictures,
    corruption: str,
    severity: int = 5,
    seed: int = 0,
    *,
    first: int = 0,
    threads: int = 0,
    photographs: Sequence[_Bytes] = (),
) -> Pictures:
    """Corrupts pictures as `gala corrupt` does.

    Picture i is drawn from (seed, corruption, severity, first + i) and from nothing else: a set may
    be done in parts, each with its `first`, by any number of threads.

    Parameters
    ----------
    images
        uint8, [N, 32, 32, 3] or [N, 3, 32, 32], or one picture without N; 224 in place of 32 for
        ImageNet-C's constants. Tensors on a GPU go by way of the host.
    corruption
        One of `NAMES`.
    severity
        1 to 5.
    seed
        Of all that is drawn.
    first
        The number of the first picture in its set.
    threads
        0: as many as there are. Does not change the result.
    photographs
        For frost: pictures of ice, uint8 [H, W, 3] of at least 165 x 165, 225 x 225 for large
        pictures. None: made textures.
    """
    cores = _Cores(corruption, severity, seed, photographs)
    # What has no dimensions is refused below, in words.
    count = images.shape[0] if getattr(images, "ndim", 0) == 4 else 1
    numbers = np.arange(first, first + count, dtype=np.int64)
    return cast(Pictures, _corrupt_any(cores, images, numbers, threads))


class Corruption:
    """A corruption as a transform, for pipelines like torchvision's.

    >>> transform = transforms.Compose([corrupt.Corruption("fog", 3), transforms.ToTensor()])

    Takes one picture or many: PIL images, NumPy arrays, torch tensors of uint8. What is drawn
    depends on the seed and on the bytes of each picture: the same picture always comes out the
    same, whichever worker of a loader has it and whatever came before. With `index`, a picture is
    drawn as the one of that number in its set, as `apply` and `gala corrupt` do.

    Parameters
    ----------
    name
        One of `NAMES`.
    severity
        1 to 5.
    seed
        Of all that is drawn.
    threads
        For many pictures at once. 1, since the workers of a loader are threads enough; 0: all.
    photographs
        For frost, as in `apply`.
    """

    def __init__(
        self,
        name: str,
        severity: int = 5,
        seed: int = 0,
        *,
        threads: int = 1,
        photographs: Sequence[_Bytes] = (),
    ) -> None:
        self.name, self.severity, self.seed, self.threads = name, severity, seed, threads
        self._photographs = list(photographs)
        self._cores = self._make()

    def _make(self) -> _Cores:
        return _Cores(self.name, self.severity, self.seed, self._photographs)

    def __call__(self, picture: Any, index: int | Sequence[int] | None = None) -> Any:
        """The picture, or the pictures, corrupted; of the type that was given."""
        numbers = None if index is None else np.atleast_1d(np.asarray(index, np.int64))
        return _corrupt_any(self._cores, picture, numbers, self.threads)

    def __repr__(self) -> str:
        return f"Corruption({self.name!r}, severity={self.severity}, seed={self.seed})"

    def __getstate__(self) -> dict[str, Any]:
        # What C++ made is made anew in the process that gets it.
        return {name: value for name, value in self.__dict__.items() if name != "_cores"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._cores = self._make()
