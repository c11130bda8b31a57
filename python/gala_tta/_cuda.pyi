"""The heart on a GPU, where it was built: see python/src/cuda.cpp."""

from collections.abc import Sequence

from gala_tta import _core

class Selector(_core.Selector): ...
class Stepper(_core.Stepper): ...

class Augment:
    def __init__(
        self,
        device: int,
        soft: bool,
        reflect: bool,
        blur: bool,
        noise: float,
        mean: Sequence[float],
        std: Sequence[float],
        /,
    ) -> None: ...
    def draw(self, seed: int, number: int, count: int, /) -> None: ...
    def parts(self, images: int, height: int, width: int, /) -> int: ...
    def look(
        self,
        which: int,
        input: int,
        work: int,
        parts: int,
        output: int,
        images: int,
        height: int,
        width: int,
        channels_last: bool,
        stream: int,
        /,
    ) -> None: ...

class Patches:
    def __init__(self, device: int, grid: int, /) -> None: ...
    def draw(self, seed: int, number: int, count: int, /) -> None: ...
    def look(
        self,
        which: int,
        input: int,
        output: int,
        images: int,
        height: int,
        width: int,
        channels_last: bool,
        stream: int,
        /,
    ) -> None: ...

class Norm:
    """Batch normalisation of channels-last maps; parameters: scale, shift, mean, variance."""

    def __init__(
        self,
        device: int,
        stream: int,
        rows: int,
        channels: int,
        epsilon: float,
        bfloat16: bool,
        /,
    ) -> None: ...
    def parts(self) -> int: ...
    def statistics(self, input: int, parts: int, mean: int, variance: int, /) -> None: ...
    def forward(self, parameters: Sequence[int], input: int, output: int, /) -> None: ...
    def backward(
        self,
        own: bool,
        parameters: Sequence[int],
        input: int,
        output_gradient: int,
        input_gradient: int,
        parts: int,
        scale_gradient: int,
        shift_gradient: int,
        /,
    ) -> None: ...
