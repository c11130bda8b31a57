"""The adapter under PyTorch's own modes: compiled modules, autocast, no gradients."""

from __future__ import annotations

import gala_tta as gala
import pytest
import torch
from test_adapter import batches, small_net


def test_under_autocast_a_step_sees_the_moved_weights() -> None:
    net = small_net()
    with (
        gala.Adapter(
            net, loss="entropy", select="all", optim="sgd:rate=1", norm="batch", inner_steps=2
        ) as adapter,
        torch.autocast("cpu", torch.bfloat16),
    ):
        logits = adapter(batches(1)[0])
        assert logits.dtype == torch.float32
        assert adapter.last is not None
        first, second = adapter.last.steps
        assert first.loss != second.loss


def test_a_compiled_module_adapts_as_the_module_itself() -> None:
    images = batches(2)
    for options in ({"method": "tent"}, {"method": "tent", "norm": "blend"}):
        with gala.Adapter(small_net(), **options) as adapter:  # type: ignore[arg-type]
            theirs = [adapter(each).clone() for each in images]
        compiled = torch.compile(small_net(), backend="aot_eager")
        with gala.Adapter(compiled, **options) as adapter:  # type: ignore[arg-type]
            assert adapter.layers == ["1", "4"]
            for each, logits in zip(images, theirs, strict=True):
                torch.testing.assert_close(adapter(each), logits)
        with torch.no_grad():
            torch.testing.assert_close(compiled(images[0]), small_net()(images[0]))


def test_a_module_that_was_compiled_before_follows_the_norm_mode() -> None:
    images = batches(1)[0]
    with gala.Adapter(small_net(), select="none", norm="blend") as adapter:
        expected = adapter(images)
    compiled = torch.compile(small_net().eval(), backend="aot_eager")
    with torch.no_grad():
        compiled(images)
    with gala.Adapter(compiled, select="none", norm="blend") as adapter:
        torch.testing.assert_close(adapter(images), expected)


def test_features_come_out_of_a_compiled_module() -> None:
    images = batches(3)
    with gala.Adapter(small_net(), "t3a") as adapter:
        theirs = [adapter(each).clone() for each in images]
    with gala.Adapter(torch.compile(small_net(), backend="aot_eager"), "t3a") as adapter:
        for each, logits in zip(images, theirs, strict=True):
            torch.testing.assert_close(adapter(each), logits)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_it_adapts_where_the_caller_wants_no_gradients(mode: type) -> None:
    with gala.Adapter(small_net(), "tent") as adapter:
        theirs = [adapter(images).clone() for images in batches(3)]
    with gala.Adapter(small_net(), "tent") as adapter, mode():
        for images, logits in zip(batches(3), theirs, strict=True):
            assert torch.equal(adapter(images), logits)
