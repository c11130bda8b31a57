"""The orders in which pictures come: one shift after the other, mixed, alike in class.

>>> from gala_tta import streams
>>> order = streams.make("continual:visits=20", {"fog": 10000, "snow": 10000})
>>> for batch in order.batches(200):
...     domain, index = order.domain[batch.rows], order.index[batch.rows]

The orders and their options are those of `gala` (`gala list streams`, `describe`), and so is every
draw: the same spec, sizes, labels and seed give the same order here and there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch.utils.data import Sampler

from gala_tta import _core
from gala_tta.listing import Option

__all__ = [
    "Batch",
    "BatchSampler",
    "Domain",
    "Option",
    "Segment",
    "Stream",
    "corrupted",
    "describe",
    "make",
]


@dataclass(frozen=True)
class Domain:
    """A part of the data that has one character: a corruption at one severity, an environment.

    Parameters
    ----------
    name
        What its segments are called.
    size
        How many pictures it has; not needed with labels.
    labels
        The class of each picture, from 0. Only `correlated` looks at them.
    classes
        How many classes there are; 0: the largest label + 1.
    family, severity
        The corruption without its severity, and that; `gradual` needs them.
    """

    name: str
    size: int = 0
    labels: ArrayLike | None = field(default=None, repr=False)
    classes: int = 0
    family: str = ""
    severity: int = 0

    def _row(self) -> tuple[str, int, list[int] | None, int, str, int]:
        labels: list[int] | None = None
        if self.labels is not None:
            array = np.asarray(self.labels)
            if array.ndim != 1 or array.dtype.kind not in "iu":
                raise ValueError(f"domain {self.name}: labels must be one whole number a picture")
            labels = array.astype(np.int64).tolist()
            if labels == []:
                labels = None
        size = self.size if labels is None or self.size else len(labels)
        return self.name, size, labels, self.classes, self.family, self.severity


@dataclass(frozen=True)
class Segment:
    """Consecutive positions of a stream between two borders."""

    name: str
    begin: int
    size: int


@dataclass(frozen=True)
class Batch:
    """Consecutive positions that are answered together; `segment` is that of the first."""

    begin: int
    size: int
    segment: int

    @property
    def rows(self) -> slice:
        """The positions, to cut `Stream.domain`, `Stream.index` or `Stream.positions` with."""
        return slice(self.begin, self.begin + self.size)


def describe() -> dict[str, tuple[str, list[Option]]]:
    """The streams that can be named: a line on each, and its options."""
    return {
        name: (summary, [Option(*option) for option in options])
        for name, summary, options in _core.describe_streams()
    }


class Stream:
    """Which pictures come in which order; `make` makes it.

    Attributes
    ----------
    spec
        The order with every option written out.
    domain, index
        Of each position: the number of its domain, and of the picture in it. int32.
    positions
        The same as one number: that of the picture where all domains lie behind each other, as in
        `torch.utils.data.ConcatDataset`. int64.
    segments
        What lies between two borders, in order.
    reset_at_borders
        Whether whoever runs it should begin each segment with the source model.
    """

    def __init__(self, spec: str, domains: Sequence[Domain], seed: int) -> None:
        if not isinstance(spec, str):
            raise TypeError(f"a stream is named by a spec such as 'mixed', not by {spec!r}")
        for domain in domains:
            if not isinstance(domain, Domain):
                raise TypeError(
                    f"domains are names with sizes or labels, or Domains, not {domain!r}"
                )
        if not isinstance(seed, int | np.integer) or not 0 <= seed < 2**64:
            raise ValueError(f"seed must be a whole number from 0 to {2**64 - 1}, not {seed!r}")
        rows = [domain._row() for domain in domains]
        self._core = _core.StreamOrder(spec, rows, int(seed))
        self.domains: list[str] = [row[0] for row in rows]
        self.spec: str = self._core.spec
        self.domain: NDArray[np.int32] = self._core.domain
        self.index: NDArray[np.int32] = self._core.index
        self._sizes = [row[1] for row in rows]
        sizes = np.array(self._sizes, np.int64)
        offsets = np.cumsum(sizes) - sizes
        self.positions: NDArray[np.int64] = offsets[self.domain] + self.index
        self.segments: list[Segment] = [Segment(*segment) for segment in self._core.segments]
        self.reset_at_borders: bool = self._core.reset_at_borders

    def __len__(self) -> int:
        return len(self.index)

    def __repr__(self) -> str:
        return f"Stream({self.spec!r}, {len(self)} pictures of {len(self.domains)} domains)"

    def batches(self, batch_size: int) -> list[Batch]:
        """The batches in order: cut at borders, or the last left out, as the spec says."""
        return [Batch(*row) for row in self._core.batches(batch_size).tolist()]

    def sampler(self, batch_size: int) -> BatchSampler:
        """For a loader over the domains behind each other.

        >>> data = torch.utils.data.ConcatDataset(sets)
        >>> loader = torch.utils.data.DataLoader(data, batch_sampler=order.sampler(200))
        """
        return BatchSampler(self, batch_size)

    def arrays(self, batch_size: int, *columns: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """Goes through arrays in the order of the stream.

        Each column is a list with an array or a tensor for each domain: `[fog, snow]`. Gives, batch
        by batch, the `Batch` and the rows of each column.
        """
        for column in columns:
            if len(column) != len(self.domains):
                raise ValueError(
                    f"{len(column)} arrays for {len(self.domains)} domains ({self.domains})"
                )
            for name, size, array in zip(self.domains, self._sizes, column, strict=True):
                if len(array) < size:
                    raise ValueError(
                        f"domain {name} has {size} pictures, and its array {len(array)}"
                    )
        for batch in self.batches(batch_size):
            yield (batch, *(self._gather(column, batch) for column in columns))

    def _gather(self, column: Sequence[Any], batch: Batch) -> Any:
        domain, index = self.domain[batch.rows], self.index[batch.rows].astype(np.int64)
        present = np.unique(domain)
        parts = [column[number][index[domain == number]] for number in present]
        if len(parts) == 1:
            return parts[0]
        # The parts lie by domain; each row goes back to where the stream has it.
        back = np.argsort(np.argsort(domain, kind="stable"), kind="stable")
        if isinstance(parts[0], torch.Tensor):
            return torch.cat(parts)[torch.from_numpy(back).to(parts[0].device)]
        return np.concatenate(parts)[back]


class BatchSampler(Sampler[list[int]]):
    """The batches of a stream as lists of positions, for `DataLoader(batch_sampler=...)`."""

    def __init__(self, stream: Stream, batch_size: int) -> None:
        self.stream = stream
        self._batches = stream.batches(batch_size)

    def __iter__(self) -> Iterator[list[int]]:
        for batch in self._batches:
            yield self.stream.positions[batch.rows].tolist()

    def __len__(self) -> int:
        return len(self._batches)


def make(
    spec: str,
    domains: Sequence[Domain] | Mapping[str, int | ArrayLike],
    seed: int = 0,
) -> Stream:
    """Lays out a stream.

    Parameters
    ----------
    spec
        Such as "continual", "continual:visits=20" (recurring), "gradual",
        "correlated:by=dirichlet,delta=0.1", "correlated" (sorted by class) or "mixed". Empty:
        `single` for one domain, `continual` for several.
    domains
        Domains, or their names with sizes or labels: {"fog": 10000} or {"fog": labels}.
    seed
        Of all that is drawn.
    """
    if isinstance(domains, Mapping):
        domains = [
            Domain(name, size=int(given))
            if isinstance(given, (int, np.integer))
            else Domain(name, labels=given)
            for name, given in domains.items()
        ]
    return Stream(spec, domains, seed)


def corrupted(
    labels: ArrayLike,
    names: Sequence[str],
    severities: Sequence[int] = (5,),
    classes: int = 0,
) -> list[Domain]:
    """The domains of a set under corruptions, as `cifar10c` and `cifar100c` of the program.

    One for each corruption and severity, severities innermost, named "fog" or, where several
    severities are asked for, "fog_5". All have the labels of the clean set.
    """
    return [
        Domain(
            f"{name}_{severity}" if len(severities) > 1 else name,
            labels=labels,
            classes=classes,
            family=name,
            severity=severity,
        )
        for name in names
        for severity in severities
    ]
