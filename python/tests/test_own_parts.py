"""Losses and selectors of the user's own, and bad input: a clear error, the module unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gala_tta as gala
import pytest
import torch
from test_adapter import assert_equal, batches, copy_of, entropy, small_net
from torch import Tensor, nn


def test_a_function_is_a_loss() -> None:
    images = batches(3)
    with gala.Adapter(small_net(), loss="entropy", select="gala", norm="batch") as adapter:
        theirs = [adapter(each).clone() for each in images]
    with gala.Adapter(small_net(), loss=entropy, select="gala", norm="batch") as adapter:
        for each, logits in zip(images, theirs, strict=True):
            torch.testing.assert_close(adapter(each), logits, rtol=1e-4, atol=1e-5)


def test_a_loss_may_ask_for_features() -> None:
    seen = []

    def loss(logits: Tensor, features: Tensor) -> Tensor:
        seen.append(tuple(features.shape))
        return entropy(logits) + features.square().mean()

    with gala.Adapter(small_net(), loss=loss, select="all") as adapter:
        adapter(batches(1)[0])
    assert seen == [(8, 12)]


class LargestUpdate:
    """Moves the layer of the largest update."""

    window = 4

    def __init__(self) -> None:
        self.steps: list[tuple[int, int]] = []

    def select(self, rows: gala.Rows) -> list[float]:
        self.steps.append((rows.step, rows.window_step))
        best = max(rows, key=lambda row: row.update_sq)
        return [float(row is best) for row in rows]


def test_a_class_is_a_selector() -> None:
    selector = LargestUpdate()
    with gala.Adapter(small_net(), loss="entropy", select=selector, norm="batch") as adapter:
        for images in batches(5):
            adapter(images)
            assert adapter.last is not None
            assert adapter.last.record is not None
            norms = adapter.last.record.update_norms
            assert adapter.last.selected == [adapter.layers[norms.index(max(norms))]]
    assert selector.steps == [(1, 1), (2, 2), (3, 3), (4, 4), (5, 1)]


class Wrong:
    def __init__(self, weights: Any) -> None:
        self.weights = weights

    def select(self, rows: gala.Rows) -> Any:
        return self.weights


class Odd(Wrong):
    window = "x"


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "loss of a shape": ({"loss": lambda logits: logits.mean(1)}, "must return a scalar, not a"),
    "loss of no tensor": ({"loss": lambda logits: 3}, "must return a scalar tensor, not int"),
    "loss without gradient": ({"loss": lambda logits: logits.detach().mean()}, "does not depend"),
    "too few weights": ({"select": Wrong([1.0])}, "the selector gave 1 weights for 5 layers"),
    "weights that are none": ({"select": Wrong([float("nan")] * 5)}, "gave a layer the weight nan"),
    "weights that are words": ({"select": Wrong("abcde")}, "must return a number for each of 5"),
    "no weights": ({"select": Wrong(None)}, "must return a number for each of 5"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_part_is_an_error_and_nothing_moves(name: str) -> None:
    options, words = BAD[name]
    net = small_net()
    before = copy_of(net)
    with gala.Adapter(net, **{"loss": "entropy", "select": "all"} | options) as adapter:
        with pytest.raises(gala.Error) as error:
            adapter(batches(1)[0])
        assert words in str(error.value)
        assert_equal(copy_of(net), before)
        assert all(p.grad is None for p in net.parameters())
        assert adapter.totals.batches == 0
    assert_equal(copy_of(net), before)


def frozen() -> nn.Module:
    return small_net().requires_grad_(False)


def half() -> nn.Module:
    return small_net().half()


MAKES: dict[str, tuple[Callable[[], gala.Adapter], str]] = {
    "all frozen": (lambda: gala.Adapter(frozen(), "tent"), "is left to adapt"),
    "nothing there": (lambda: gala.Adapter(nn.ReLU(), "tent"), "is left to adapt"),
    "no norms": (lambda: gala.Adapter(nn.Linear(2, 2), "tent"), "is left to adapt"),
    "half": (lambda: gala.Adapter(half(), "tent"), "parameter 1.weight is not float32"),
    "method": (lambda: gala.Adapter(small_net(), "tint"), 'did you mean "tent"?'),
    "option": (lambda: gala.Adapter(small_net(), "tent", sed=1), 'unknown option "sed"'),
    "pattern": (lambda: gala.Adapter(small_net(), include=["layer9"]), "matches no parameter"),
    "range": (lambda: gala.Adapter(small_net(), loss="shot:beta=2"), "beta must lie in [0, 1]"),
    "view": (lambda: gala.Adapter(small_net(), loss="consistency"), "and the method has no view"),
    "drift": (lambda: gala.Adapter(small_net(), "petta"), "the drift learns from images of"),
    "source": (lambda: gala.Adapter(small_net(), "eata"), "learns from images of the source"),
    "source of nobody": (
        lambda: gala.Adapter(small_net(), "tent", source_data=batches(1)),
        "nobody learns from images of the source (source_data): the penalty fisher and the",
    ),
    "selector": (lambda: gala.Adapter(small_net(), select=3), "have a function select(rows)"),  # type: ignore[arg-type]
    "module": (lambda: gala.Adapter(3, "tent"), "must be a torch.nn.Module, not int"),  # type: ignore[arg-type]
    "callback": (lambda: gala.Adapter(small_net(), "tent", callbacks=[3]), "not int"),  # type: ignore[list-item]
    "mean": (lambda: gala.Adapter(small_net(), "roid", mean=[0.5]), "mean must be three numbers"),
    "std": (lambda: gala.Adapter(small_net(), "roid", std=[1, 0, 1]), "std must be greater than 0"),
    "no batches": (
        lambda: gala.Adapter(small_net(), "eata", source_data=3),  # type: ignore[arg-type]
        "takes batches of images, not int",
    ),
    "with labels": (
        lambda: gala.Adapter(small_net(), "eata", source_data=[(torch.rand(2, 3, 8, 8), 1)]),  # type: ignore[list-item]
        "must give tensors [N, ...] of images, not tuple",
    ),
    "classifier": (lambda: gala.Adapter(small_net(), classifier="fc"), 'no part "fc"'),
    "number as method": (lambda: gala.Adapter(small_net(), 3), "must be a name"),  # type: ignore[arg-type]
    "number as classifier": (
        lambda: gala.Adapter(small_net(), classifier=3),  # type: ignore[arg-type]
        "must be a module or its name, not int",
    ),
    "class as optimizer": (
        lambda: gala.Adapter(small_net(), optim=torch.optim.Adam),  # type: ignore[arg-type]
        "optimizer takes a text such as a spec, or a number, not Adam",
    ),
    "optimizer twice": (
        lambda: gala.Adapter(small_net(), optim="adam", optimizer="sgd"),
        "optim and optimizer are the same option",
    ),
    "large seed": (lambda: gala.Adapter(small_net(), seed=2**70), "seed cannot be 11805916207"),
    "numbers as patterns": (lambda: gala.Adapter(small_net(), include=[1]), "takes texts, not int"),
    "function as callbacks": (
        lambda: gala.Adapter(small_net(), callbacks=print),  # type: ignore[arg-type]
        "callbacks must be a list of functions",
    ),
    "words as mean": (
        lambda: gala.Adapter(small_net(), "roid", mean="abc"),  # type: ignore[arg-type]
        "mean must be three numbers, not 'abc'",
    ),
    "selector's class": (
        lambda: gala.Adapter(small_net(), select=Wrong),  # type: ignore[arg-type]
        "must be an object: Wrong()",
    ),
    "selector's window": (
        lambda: gala.Adapter(small_net(), select=Odd([1.0])),
        "window must be a number of steps, not 'x'",
    ),
}


@pytest.mark.parametrize("name", MAKES)
def test_what_cannot_be_is_said_at_once(name: str) -> None:
    make, words = MAKES[name]
    with pytest.raises(gala.Error) as error:
        make()
    assert words in str(error.value)


def test_images_of_the_source_are_no_mistake_where_nothing_adapts() -> None:
    gala.Adapter(small_net(), "tent", select="none", source_data=batches(1)).close()


def test_after_an_error_the_module_is_as_it_was() -> None:
    net = small_net().train()
    before = copy_of(net)
    with pytest.raises(gala.Error):
        gala.Adapter(net, "eata", source_data=[])
    assert_equal(copy_of(net), before)
    assert net.training
    gala.Adapter(net, "tent").close()


def test_an_answer_without_a_gradient_is_an_error() -> None:
    class Still(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = small_net()

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                return torch.as_tensor(self.net(images))

    with (
        gala.Adapter(Still(), "tent") as adapter,
        pytest.raises(gala.Error, match="the module's answer has no gradient"),
    ):
        adapter(batches(1)[0])


def test_a_state_that_is_none_is_an_error() -> None:
    with (
        gala.Adapter(small_net(), "tent") as adapter,
        pytest.raises(gala.Error, match=r"what state_dict\(\) returned, not NoneType"),
    ):
        adapter.load_state_dict(None)  # type: ignore[arg-type]


def test_images_elsewhere_are_an_error() -> None:
    with gala.Adapter(small_net(), "tent") as adapter:
        with pytest.raises(gala.Error, match="the images are on meta, the module is on cpu"):
            adapter(torch.empty(2, 3, 8, 8, device="meta"))
        with pytest.raises(gala.Error, match="at least one image"):
            adapter(torch.empty(0, 3, 8, 8))
