"""A selector of one's own: the layer of the largest gradient for its size, never twice in a row."""

import itertools

import gala_tta as gala
import torch
from torch import nn


class LoudestLayer:
    """Gets the sums of every layer and returns a weight for each."""

    def __init__(self) -> None:
        self._before = ""

    def select(self, rows: gala.Rows) -> list[float]:
        def loudness(row: gala.Row) -> float:
            return -1.0 if row.name == self._before else row.gradient_sq / row.count

        best = max(rows, key=loudness)
        self._before = best.name
        return [1.0 if row is best else 0.0 for row in rows]


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 196, 10)
    )
    moved = []
    with gala.Adapter(model, loss="entropy", select=LoudestLayer(), norm="batch") as adapter:
        for _ in range(6):
            adapter(torch.rand(8, 3, 16, 16))
            moved += adapter.last.selected
    print("moved:", ", ".join(moved))
    assert len(moved) == 6
    assert all(a != b for a, b in itertools.pairwise(moved))


if __name__ == "__main__":
    main()
