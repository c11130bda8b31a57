"""Everything that later steps depend on, as a dictionary of tensors and plain values."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gala_tta._device import HostStepper
from gala_tta._parts import Error, fail
from gala_tta._records import Totals
from gala_tta._watch import Snapshot

if TYPE_CHECKING:
    from gala_tta.adapter import Adapter


class _Archive:
    """What a stepper remembers: buffers tensor by tensor, values as JSON."""

    def __init__(self, adapter: Adapter, state: dict[str, Any], loads: bool) -> None:
        assert adapter._arena is not None
        self._arena, self._state, self.loads = adapter._arena, state, loads
        over_host = isinstance(adapter._stepper, HostStepper)
        self._where = torch.device("cpu") if over_host else adapter._arena.device

    def buffer(self, prefix: str, values: Tensor) -> None:
        for number, (name, _, _) in enumerate(self._arena.tensors):
            view, key = self._arena.view(values, number), prefix + name
            if not self.loads:
                self._state[key] = view.clone()
            elif key not in self._state:
                fail(f"the state lacks {key}")
            elif self._state[key].shape != view.shape:
                fail(f"the state holds {key} in another shape")
            else:
                view.copy_(self._state[key])

    def make_buffer(self) -> Tensor:
        return torch.zeros_like(self._arena.values, device=self._where)

    def exchange(self, name: str, text: str | None) -> str:
        if text is not None:
            self._state[name] = text
            return text
        if name not in self._state:
            fail(f"the state lacks {name}")
        return str(self._state[name])


def save_adapter(adapter: Adapter) -> dict[str, Any]:
    """Return the state of an adapter."""
    steps: dict[str, Any] = {}
    adapter._stepper.remember(_Archive(adapter, steps, loads=False))
    if adapter._spread is not None:
        adapter._spread.remember(_Archive(adapter, steps, loads=False))
    assert adapter._arena is not None
    assert adapter._norms is not None
    healthy = adapter._watch.healthy
    return {
        "options": adapter.options,
        "parameters": {
            name: adapter._arena.view(adapter._arena.values, number).clone()
            for number, (name, _, _) in enumerate(adapter._arena.tensors)
        },
        "statistics": adapter._norms.copies(),
        "steps": steps,
        "parts": {name: part.state() for name, part in adapter._parts.items()},
        "guard": adapter._watch.guard.save(),
        "classes": adapter._classes,
        "outputs": adapter._outputs,
        "travelled": list(adapter._watch.travelled),
        "healthy": None if healthy is None else dataclasses.asdict(healthy),
        "totals": dataclasses.asdict(adapter.totals),
        "stopped": adapter._stopped,
    }


def load_adapter(adapter: Adapter, state: Mapping[str, Any]) -> None:
    """Go on from a state; one that does not fit changes nothing."""
    now = save_adapter(adapter)
    for key in now:
        if key not in state:
            fail(f"the state lacks {key}")
    for name, value in now["options"].items():
        if state["options"].get(name) != value:
            fail(
                f"the state was made with {name} {state['options'].get(name)!r}, "
                f"and this adapter has {value!r}"
            )
    if state["outputs"] != now["outputs"]:
        fail(
            f"the state is of a classifier with {state['outputs']} outputs, "
            f"and this one has {now['outputs']}"
        )
    try:
        _put_in(adapter, state)
    except (Error, KeyError, AttributeError, TypeError, RuntimeError) as error:
        _put_in(adapter, now)
        if isinstance(error, Error):
            raise
        raise Error(f"the state does not fit: {error}") from error


@torch.no_grad()
def _put_in(adapter: Adapter, state: Mapping[str, Any]) -> None:
    arena, norms, watch = adapter._arena, adapter._norms, adapter._watch
    assert arena is not None
    assert norms is not None
    for number, (name, sizes, _) in enumerate(arena.tensors):
        if name not in state["parameters"]:
            fail(f"the state lacks {name}")
        if list(state["parameters"][name].shape) != sizes:
            fail(f"the state holds {name} in another shape")
        arena.view(arena.values, number).copy_(state["parameters"][name])
    if len(state["statistics"]) != len(norms.moving):
        fail("the state holds statistics of other norm layers")
    norms.put_back(state["statistics"])
    if state["classes"]:
        adapter._know_classes(state["classes"])
    adapter._stepper.remember(_Archive(adapter, dict(state["steps"]), loads=True))
    if adapter._spread is not None:
        if state["classes"]:
            adapter._spread.remember(_Archive(adapter, dict(state["steps"]), loads=True))
        norms.spread.fill_(adapter._spread.value)
    for name, part in adapter._parts.items():
        if name not in state["parts"]:
            fail(f"the state lacks the part {name}")
        part.load(state["parts"][name])
    watch.guard.load(state["guard"])
    watch.travelled = list(state["travelled"])
    watch.healthy = None if state["healthy"] is None else Snapshot(**state["healthy"])
    adapter.totals = Totals(**state["totals"])
    if len(adapter.totals.weight) != len(watch.travelled):
        fail("the totals are of another number of layers")
    adapter._stopped = bool(state["stopped"])
