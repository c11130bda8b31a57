"""gala_tta.streams: the program's orders, for arrays and for loaders."""

from __future__ import annotations

import json

import gala_tta
import numpy as np
import program_truth as truth
import pytest
import torch
from gala_tta import streams
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

WRONG = gala_tta.Error


def order_of(spec: str, severities: list[int]) -> list[list[int]]:
    domains = streams.corrupted(truth.labels(), truth.CORRUPTIONS, severities, truth.CLASSES)
    order = streams.make(spec, domains, seed=truth.SEED)
    return np.stack([order.domain, order.index], axis=1).tolist()


@pytest.mark.parametrize(("spec", "severities"), truth.STREAMS)
def test_the_order_is_the_one_that_the_program_gave(spec: str, severities: list[int]) -> None:
    golden = json.loads(truth.GOLDEN.read_text())["streams"]
    assert order_of(spec, severities) == golden[spec]


@pytest.mark.skipif(not truth.program(), reason="GALA_PROGRAM is not set")
def test_the_orders_are_those_that_the_program_gives() -> None:
    assert {spec: order_of(spec, severities) for spec, severities in truth.STREAMS} == (
        truth.stream_orders()
    )


def test_a_stream_is_described() -> None:
    known = streams.describe()
    assert list(known) == ["single", "continual", "gradual", "mixed", "correlated"]
    summary, options = known["correlated"]
    assert "alike in class" in summary
    delta = next(option for option in options if option.name == "delta")
    assert (delta.type, delta.default) == ("number", "0.1")


def test_domains_follow_each_other_and_batches_end_at_borders() -> None:
    order = streams.make("continual:visits=2", {"fog": 5, "snow": 3})
    assert len(order) == 16
    assert order.segments == [
        streams.Segment("fog (visit 1)", 0, 5),
        streams.Segment("snow (visit 1)", 5, 3),
        streams.Segment("fog (visit 2)", 8, 5),
        streams.Segment("snow (visit 2)", 13, 3),
    ]
    assert order.batches(4) == [
        streams.Batch(0, 4, 0),
        streams.Batch(4, 1, 0),
        streams.Batch(5, 3, 1),
        streams.Batch(8, 4, 2),
        streams.Batch(12, 1, 2),
        streams.Batch(13, 3, 3),
    ]
    crossing = streams.make("continual:borders=cross,last=drop", {"fog": 5, "snow": 4})
    assert crossing.batches(4) == [streams.Batch(0, 4, 0), streams.Batch(4, 4, 0)]
    assert not order.reset_at_borders
    assert streams.make("continual:reset=yes", {"fog": 5}).reset_at_borders
    assert streams.make("", {"fog": 5}).spec.startswith("single:")
    assert streams.make("", {"fog": 5, "snow": 1}).spec.startswith("continual:")


def test_sorted_and_correlated_streams_keep_classes_together() -> None:
    labels = np.arange(200) % 10

    def changes(spec: str) -> int:
        order = streams.make(spec, {"fog": labels}, seed=3)
        assert sorted(order.index.tolist()) == list(range(200))
        came = labels[order.index]
        return int(np.count_nonzero(came[1:] != came[:-1]))

    assert changes("correlated") == 9
    shuffled = changes("single:order=shuffled")
    assert 9 < changes("correlated:by=dirichlet,delta=0.01,slots=10") < shuffled


def test_the_seed_decides() -> None:
    one, same, other = (
        streams.make("mixed", {"fog": 50, "snow": 50}, seed=seed).positions for seed in (1, 1, 2)
    )
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_a_loader_follows_a_stream() -> None:
    sets = [TensorDataset(torch.arange(5)), TensorDataset(torch.arange(100, 104))]
    order = streams.make("mixed", {"fog": 5, "snow": 4}, seed=1)
    sampler = order.sampler(4)
    assert len(sampler) == 3
    loader = DataLoader(ConcatDataset(sets), batch_sampler=sampler)
    batches = [batch for (batch,) in loader]
    assert [len(batch) for batch in batches] == [4, 4, 1]
    expected = torch.from_numpy(order.domain * 100 + order.index).long()
    assert torch.equal(torch.cat(batches), expected)


@pytest.mark.parametrize("spec", ["mixed", "continual", "continual:borders=cross"])
def test_arrays_come_in_the_order_of_a_stream(spec: str) -> None:
    order = streams.make(spec, {"fog": 5, "snow": 4, "rain": 3}, seed=2)
    images = [np.arange(10 * k, 10 * k + n)[:, None] for k, n in enumerate((5, 4, 3))]
    labels = [torch.from_numpy(part[:, 0]) for part in images]
    seen = []
    for batch, rows, tensors in order.arrays(4, images, labels):
        assert len(rows) == batch.size
        assert torch.equal(tensors, torch.from_numpy(rows[:, 0]))
        seen += rows[:, 0].tolist()
    assert seen == (order.domain * 10 + order.index).tolist()
    with pytest.raises(ValueError, match="2 arrays for 3 domains"):
        next(order.arrays(4, images[:2]))


def test_wrong_words_are_answered() -> None:
    with pytest.raises(WRONG, match=r'unknown stream "continuous".*continual'):
        streams.make("continuous", {"fog": 5})
    with pytest.raises(WRONG, match="visits cannot be 0"):
        streams.make("continual:visits=0", {"fog": 5})
    with pytest.raises(WRONG, match="domain fog has no labels to correlate"):
        streams.make("correlated", {"fog": 5})
    with pytest.raises(WRONG, match="no severities"):
        streams.make("gradual", {"fog": 5})
    with pytest.raises(WRONG, match="domain fog holds no pictures"):
        streams.make("continual", {"fog": 0})
    with pytest.raises(WRONG, match="domain fog: 3 labels for 5 pictures"):
        streams.make("continual", [streams.Domain("fog", 5, [0, 1, 2])])
    with pytest.raises(WRONG, match="label 7 is out of range for 5 classes"):
        streams.make("continual", [streams.Domain("fog", labels=[0, 7], classes=5)])
    with pytest.raises(WRONG, match="label -1 is out of range"):
        streams.make("continual", {"fog": [0, -1]})
    with pytest.raises(ValueError, match="one whole number a picture"):
        streams.make("continual", {"fog": [0.5, 1.0]})
    with pytest.raises(TypeError, match="named by a spec such as 'mixed', not by 3"):
        streams.make(3, {"fog": 5})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="or Domains, not 1"):
        streams.make("continual", [1, 2])  # type: ignore[list-item]
    for seed in (-1, 2**64, 0.5):
        with pytest.raises(ValueError, match="seed must be a whole number from 0"):
            streams.make("mixed", {"fog": 5}, seed=seed)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="domain fog has 5 pictures, and its array 3"):
        next(streams.make("continual", {"fog": 5}).arrays(2, [np.zeros(3)]))
    with pytest.raises(WRONG, match="a stream needs a domain"):
        streams.make("continual", {})
    with pytest.raises(WRONG, match="batch size cannot be 0"):
        streams.make("continual", {"fog": 5}).batches(0)
