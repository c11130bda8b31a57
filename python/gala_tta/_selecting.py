"""Selectors of the user's own: a class with `select(rows)`, which gets the sums of every layer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gala_tta import _core
from gala_tta._parts import fail


@dataclass(frozen=True)
class Row:
    """What one pass over a layer found. u is the update it would receive, TD its displacement."""

    name: str
    count: int
    cosine: float
    update_sq: float
    update_dot_shift: float
    shift_sq: float
    gradient_sq: float
    value_sq: float

    @property
    def update_norm(self) -> float:
        """|u|."""
        return math.sqrt(self.update_sq)

    @property
    def shift_norm(self) -> float:
        """|TD|."""
        return math.sqrt(self.shift_sq)

    @property
    def gradient_norm(self) -> float:
        """|g|."""
        return math.sqrt(self.gradient_sq)


class Rows(list[Row]):
    """A row for each layer, in the module's order, and where the step stands."""

    step: int
    window_step: int
    learning_rate: float


def own_selector(selector: Any, heart: Any) -> _core.Selector:
    """Make a selector of the library's from one of the user's."""
    if isinstance(selector, type):
        name = selector.__name__
        fail(f"a selector must be an object: {name}(), not the class {name}")
    select = getattr(selector, "select", None)
    if not callable(select):
        fail(
            f"a selector must be a spec or have a function select(rows), "
            f"which {type(selector).__name__} has not"
        )

    def choose(
        tuples: list[tuple[Any, ...]], step: int, window_step: int, rate: float
    ) -> Sequence[float]:
        rows = Rows(Row(*each) for each in tuples)
        rows.step, rows.window_step, rows.learning_rate = step, window_step, rate
        weights = select(rows)
        try:
            return [float(each) for each in weights]
        except (TypeError, ValueError):
            fail(
                f"the selector must return a number for each of {len(rows)} layers, "
                f"not {type(weights).__name__}"
            )

    window = getattr(selector, "window", 0)
    if not isinstance(window, int):
        fail(f"the selector's window must be a number of steps, not {window!r}")
    granularity = getattr(selector, "granularity", "module")
    made: _core.Selector = heart.Selector.of_python(choose, window, granularity)
    return made
