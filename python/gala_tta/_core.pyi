from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

def canonical_spec(text: str) -> str: ...

class StreamOrder:
    def __init__(
        self,
        spec: str,
        domains: Sequence[tuple[str, int, Sequence[int] | None, int, str, int]],
        seed: int,
    ) -> None: ...
    @property
    def spec(self) -> str: ...
    @property
    def domain(self) -> NDArray[np.int32]: ...
    @property
    def index(self) -> NDArray[np.int32]: ...
    @property
    def segments(self) -> list[tuple[str, int, int]]: ...
    @property
    def reset_at_borders(self) -> bool: ...
    def batches(self, size: int) -> NDArray[np.int64]: ...

def describe_streams() -> list[tuple[str, str, list[tuple[str, str, str, str]]]]: ...

# Only where libjpeg was found.
BENCHMARK_CORRUPTIONS: int

class Corruptor:
    def __init__(
        self, name: str, severity: int, seed: int, photographs: Sequence[NDArray[np.uint8]]
    ) -> None: ...
    def apply(
        self,
        input: NDArray[np.uint8],
        output: NDArray[np.uint8],
        indices: NDArray[np.int64],
        threads: int,
    ) -> None: ...

def describe_corruptions() -> list[tuple[str, str]]: ...
