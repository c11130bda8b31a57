"""What an adapter remembers: its state, its totals, and a new beginning."""

from __future__ import annotations

import gala_tta as gala
import pytest
import torch
from test_adapter import assert_equal, batches, copy_of, small_net
from torch import nn


def test_a_state_goes_on_to_the_same_bits() -> None:
    stream = batches(9)
    for options in (
        {"method": "gala", "select": "gala:window=3"},
        {"method": "roid"},
        {"method": "cotta"},
        {"method": "palm"},
        {"method": "law", "select": "law:carried=yes"},
        {"method": "cotta", "norm": "balanced:momentum=0.1"},
        {"method": "rotta", "store": "balanced:size=8,every=8"},
        {"method": "t3a"},
        {"method": "gala", "norm": "running", "guard": "rollback:to=healthy,horizon=8,every=1"},
    ):
        with gala.Adapter(small_net(), **options) as whole:  # type: ignore[arg-type]
            for images in stream[:4]:
                whole(images)
            state = whole.state_dict()
            expected = [whole(images).clone() for images in stream[4:]]
        with gala.Adapter(small_net(), **options) as other:  # type: ignore[arg-type]
            other(stream[0])
            other.load_state_dict(state)
            assert other.totals.batches == 4
            for images, logits in zip(stream[4:], expected, strict=True):
                assert torch.equal(other(images), logits), options


def test_totals_count_updates_by_their_weight() -> None:
    for method, select in (("palm", None), ("gala", "gala:window=3"), ("tent", "relative")):
        with gala.Adapter(small_net(), method, select=select) as adapter:
            expected = [0.0] * 8
            for images in batches(5):
                adapter(images)
                for step in adapter.last.steps if adapter.last else []:
                    expected = [a + b for a, b in zip(expected, step.weights, strict=False)]
            assert adapter.totals.weight == expected[: len(adapter.totals.weight)]
            assert sum(adapter.totals.weight) > 0
            state = adapter.state_dict()
            del state["totals"]["weight"]
            with pytest.raises(gala.Error, match="totals are of another number of layers"):
                adapter.load_state_dict(state)


def test_a_state_that_does_not_fit_changes_nothing() -> None:
    with gala.Adapter(small_net(), "tent") as other:
        state = other.state_dict()
    with gala.Adapter(small_net(), "gala") as adapter:
        adapter(batches(1)[0])
        before = copy_of(adapter.module)
        with pytest.raises(gala.Error, match="the state was made with"):
            adapter.load_state_dict(state)
        state = adapter.state_dict()
        state["parameters"]["0.weight"] = torch.zeros(2)
        with pytest.raises(gala.Error, match=r"0\.weight in another shape"):
            adapter.load_state_dict(state)
        assert_equal(copy_of(adapter.module), before)


def test_a_state_of_other_classes_is_refused() -> None:
    """Also where the classifier does not adapt, and none of its numbers is in the state."""
    with gala.Adapter(small_net(), "tent") as other:
        other(batches(1)[0])
        state = other.state_dict()
    net = small_net()
    net[-1] = nn.Linear(12, 7)
    with (
        gala.Adapter(net, "tent") as adapter,
        pytest.raises(gala.Error, match="outputs, and this one has 7"),
    ):
        adapter.load_state_dict(state)


def test_reset_begins_anew() -> None:
    with gala.Adapter(small_net(), "gala") as adapter:
        first = [adapter(images).clone() for images in batches(4)]
        adapter.reset()
        assert adapter.totals.batches == 0
        again = [adapter(images).clone() for images in batches(4)]
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
