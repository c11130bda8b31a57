"""Steps over the host, for parameters that lie where the heart has no passes."""

from __future__ import annotations

from typing import Any

import gala_tta as gala
import pytest
import torch
from gala_tta import _device, adapter
from test_adapter import batches, small_net


def test_over_the_host_the_bits_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"method": "roid", "select": "gala:window=3", "inner_steps": 2}
    with gala.Adapter(small_net(), **options) as straight:
        theirs = [straight(images).clone() for images in batches(5)]

    def over_host(*given: Any) -> _device.AnyStepper:
        return _device.HostStepper(*given[:5])

    monkeypatch.setattr(adapter, "make_stepper", over_host)
    with gala.Adapter(small_net(), **options) as mirrored:
        for images, logits in zip(batches(5), theirs, strict=True):
            assert torch.equal(mirrored(images), logits)
        mirrored.reset()
        assert torch.equal(mirrored(batches(5)[0]), theirs[0])
