"""What the parts of a method have in common, and how they are made from their specs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NoReturn, TypeVar

import torch
from torch import Tensor

from gala_tta import _core

Error = _core.Error


def fail(words: str) -> NoReturn:
    """Raise the error of this package."""
    raise Error(words)


def require(holds: bool, words: str) -> None:
    """Raise the error of this package unless something holds."""
    if not holds:
        fail(words)


@dataclass
class Output:
    """What a forward pass gives: logits [N, C] in float32, and what the last linear layer saw."""

    logits: Tensor
    features: Tensor | None = None


class Part:
    """A part of a method that may remember something: the attributes named in `remembers`."""

    remembers: tuple[str, ...] = ()

    def reset(self) -> None:
        """Forget everything it learned."""

    def restart(self) -> None:
        """Forget what it learned of parameters that are put back to the source."""
        self.reset()

    def state(self) -> dict[str, Any]:
        """Return copies of what it remembers."""
        return {name: _copied(getattr(self, name)) for name in self.remembers}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` returned."""
        for name in self.remembers:
            if name not in state:
                fail(f"the state lacks {type(self).__name__}.{name}")
            if not _written(getattr(self, name), state[name]):
                setattr(self, name, _copied(state[name]))


def _copied(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, list):
        return [_copied(each) for each in value]
    return value


def _written(now: Any, then: Any) -> bool:
    """Write tensors in place where they fit, since a captured pass may hold them."""
    if isinstance(now, list) and isinstance(then, list) and len(now) == len(then):
        return all(_written(n, t) for n, t in zip(now, then, strict=True))
    if not isinstance(now, Tensor) or not isinstance(then, Tensor) or now.shape != then.shape:
        return False
    now.copy_(then)
    return True


P = TypeVar("P")


def make_parts(
    kind: str, text: str, known: Mapping[str, Callable[[SimpleNamespace], P]]
) -> list[P]:
    """Make what a spec, or several with plus signs between them, names.

    Names, options and defaults are the library's own; `known` is what there is of them in Python.
    """
    parts = []
    for name, options in _core.parse_parts(kind, text):
        if name not in known:
            fail(
                f'{kind} "{name}" is not in the Python package yet '
                f"(there are: {', '.join(known) or 'none'})"
            )
        parts.append(known[name](SimpleNamespace(**options)))
    return parts


def make_part(
    kind: str, text: str, known: Mapping[str, Callable[[SimpleNamespace], P]]
) -> P | None:
    """Make a part of which there is one at most."""
    if text == "none":
        return None
    parts = make_parts(kind, text, known)
    if len(parts) != 1:
        fail(f"there can be one {kind}, not {len(parts)}")
    return parts[0]


def over(number: float, divisor: Tensor) -> Tensor:
    """Divide, once rounded: Python's own `number / tensor` multiplies by a reciprocal."""
    return torch.full_like(divisor, number).div_(divisor)
