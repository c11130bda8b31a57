"""What happened: at the last batch, and since the start."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from torch import Tensor

from gala_tta._core import HealthEvent, StepRecord


@dataclass
class Last:
    """The last batch: what was answered, and what was done on the way.

    Attributes
    ----------
    logits
        What was answered, [N, C]; not finite where nobody could.
    predictions
        The largest logit of each image, -1 where no answer is finite.
    steps
        A record of every step on the batch; empty where none was made.
    from_source, unanswered
        Numbers of the images that only the source model answered, and of those that nobody did.
    adapted
        In shadow mode, what would have been the answer.
    health
        The guard's judgement, where it made one.
    """

    logits: Tensor
    predictions: list[int]
    layers: list[str] = field(repr=False)
    steps: list[StepRecord] = field(default_factory=list)
    from_source: list[int] = field(default_factory=list)
    unanswered: list[int] = field(default_factory=list)
    adapted: Tensor | None = None
    health: HealthEvent | None = None

    @property
    def record(self) -> StepRecord | None:
        """The record of the last step."""
        return self.steps[-1] if self.steps else None

    @property
    def selected(self) -> list[str]:
        """Names of the layers that the last step moved."""
        return [self.layers[i] for i in self.record.selected] if self.record else []

    @property
    def cosine(self) -> dict[str, float]:
        """The cosine of every layer at the last step; nothing where it was refused."""
        return self._by_layer(self.record.cosines if self.record else [])

    @property
    def weights(self) -> dict[str, float]:
        """The share of its update by which every layer moved at the last step."""
        return self._by_layer(self.record.weights if self.record else [])

    @property
    def loss(self) -> float | None:
        """The loss at the last step."""
        return self.record.loss if self.record else None

    def _by_layer(self, values: list[float]) -> dict[str, float]:
        return dict(zip(self.layers, values, strict=True)) if values else {}


@dataclass
class Totals:
    """What happened since the start or the last reset."""

    batches: int = 0
    steps: int = 0
    refused: int = 0
    skipped: int = 0
    rollbacks: int = 0
    resets: int = 0
    from_source: int = 0
    unanswered: int = 0
    # By layer: steps at which it moved by its whole update, Σ weights, and Σ |applied update|.
    chosen: list[int] = field(default_factory=list)
    weight: list[float] = field(default_factory=list)
    path: list[float] = field(default_factory=list)

    def copy(self) -> Totals:
        """Return the same, to go back to."""
        return replace(
            self, chosen=list(self.chosen), weight=list(self.weight), path=list(self.path)
        )

    def count(self, record: StepRecord) -> list[float]:
        """Take in a step; the way that each layer went is returned."""
        self.steps += 1
        self.refused += record.refused
        self.skipped += record.skipped
        ways = []
        pairs = zip(record.weights, record.update_norms, strict=True)
        for number, (weight, norm) in enumerate(pairs):
            self.chosen[number] += weight == 1
            self.weight[number] += weight
            ways.append(abs(weight) * norm)
            self.path[number] += ways[-1]
        return ways
