"""Where names stand beside a plot: as near to the height of their points as there is room."""

from __future__ import annotations

import math
from dataclasses import dataclass

_LINE = 14.0  # pixels of a line of text


class ErrorAxis:
    """The axis of errors: logarithmic where a collapse would leave no room for the others."""

    def __init__(self, errors: list[float], height: float) -> None:
        low, high = min(errors), max(errors)
        self.height = height
        self.logarithmic = low > 0 and high > 2 * low
        room = max(0.01, 0.06 * (self._place(high) - self._place(low)))
        below, above = self._place(low) - room, self._place(high) + room
        self.low = math.exp(below) if self.logarithmic else max(0.0, below)
        self.high = math.exp(above) if self.logarithmic else above

    def _place(self, error: float) -> float:
        return math.log(error) if self.logarithmic else error

    def pixel(self, error: float) -> float:
        """From the top."""
        span = self._place(self.high) - self._place(self.low)
        return self.height * (self._place(self.high) - self._place(error)) / span

    def error_at(self, pixel: float) -> float:
        """The other way round."""
        span = self._place(self.high) - self._place(self.low)
        at = self._place(self.high) - pixel / self.height * span
        return math.exp(at) if self.logarithmic else at


@dataclass
class _Bundle:
    """Names that touch; they lie around the mean of their points."""

    total: float  # of where the first name would stand for each
    count: int = 1

    def top(self, height: float) -> float:
        highest = max(0.0, height - _LINE * (self.count - 1))
        return min(max(self.total / self.count, 0.0), highest)


def place_names(errors: list[float], axis: ErrorAxis) -> list[float]:
    """The error at whose height the name of each point stands."""
    order = sorted(range(len(errors)), key=lambda i: -errors[i])
    bundles: list[_Bundle] = []
    for i in order:
        bundles.append(_Bundle(axis.pixel(errors[i])))
        while len(bundles) > 1:
            above, below = bundles[-2], bundles[-1]
            if above.top(axis.height) + _LINE * above.count <= below.top(axis.height):
                break
            above.total += below.total - _LINE * above.count * below.count
            above.count += below.count
            bundles.pop()
    heights = [
        bundle.top(axis.height) + _LINE * number
        for bundle in bundles
        for number in range(bundle.count)
    ]
    places = [0.0] * len(errors)
    for i, height in zip(order, heights, strict=True):
        places[i] = axis.error_at(height)
    return places
