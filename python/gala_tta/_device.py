"""The heart for the device that the parameters lie on."""

from __future__ import annotations

import torch

from gala_tta import _core
from gala_tta._arena import Arena
from gala_tta._parts import fail


def make_stepper(
    arena: Arena,
    layers: list[tuple[str, list[int]]],
    optimizer: str,
    selector: _core.Selector,
    run: str,
    notes: list[str],
) -> _core.Stepper:
    """Make the stepper over an arena's memory; what a user should know of it goes to `notes`."""
    if arena.device.type != "cpu":
        fail(f"parameters on {arena.device.type} cannot be adapted by this build")
    return _core.Stepper(
        arena.tensors,
        arena.values.data_ptr(),
        layers,
        optimizer,
        selector,
        run,
        torch.get_num_threads(),
        0,
    )
