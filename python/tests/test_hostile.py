"""Images that are no numbers: who answers afterwards, and by what."""

from __future__ import annotations

import gala_tta as gala
import pytest
import torch
from test_adapter import batches, small_net

NAMES = "auto tent eta rpl sar deyo roid cmf palm law rdumb cotta rotta memo gala bn_alpha lame t3a"
METHODS = NAMES.split(" ")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_healthy_images_after_broken_ones_are_answered(method: str, value: float) -> None:
    stream = batches(6)
    with gala.Adapter(small_net(), method, guard="off") as adapter:
        for number, images in enumerate(stream):
            if number % 3 == 1:
                images[2] = value
            logits = adapter(images)
        assert adapter.last is not None
        assert torch.isfinite(logits).all()
        assert not adapter.last.from_source, "its own answer was no number"


def test_a_broken_image_spoils_only_its_own_batch_in_a_window() -> None:
    stream = [images[:1] for images in batches(12)]
    stream[2] = torch.full_like(stream[2], float("nan"))
    with gala.Adapter(
        small_net(), "tent", store="window:length=4", norm="batch", guard="stop"
    ) as adapter:
        for number, images in enumerate(stream):
            adapter(images)
            assert adapter.last is not None
            assert not adapter.last.from_source, number
            assert bool(adapter.last.unanswered) == (number == 2)
        assert adapter.totals.steps == 3
        assert adapter.totals.refused == 0
