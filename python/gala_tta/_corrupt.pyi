"""Corruptions of pictures: see python/src/corrupt_module.cpp."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

BENCHMARK_CORRUPTIONS: int

class Corruptor:
    def __init__(
        self,
        name: str,
        severity: int,
        seed: int,
        photographs: Sequence[NDArray[np.uint8]],
        side: int,
    ) -> None: ...
    def apply(
        self,
        input: NDArray[np.uint8],
        output: NDArray[np.uint8],
        indices: NDArray[np.int64],
        threads: int,
    ) -> None: ...

def describe_corruptions() -> list[tuple[str, str]]: ...
