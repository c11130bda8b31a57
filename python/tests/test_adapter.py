"""What the adapter promises: in place, the source again at the end, the same as plain PyTorch."""

from __future__ import annotations

import copy
import pathlib
import sys
import types

import gala_tta as gala
import pytest
import torch
from torch import Tensor, nn


def small_net(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 12, 3, stride=2, padding=1),
        nn.BatchNorm2d(12),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(12, 5),
    )
    with torch.no_grad():
        net[-1].weight.mul_(8)  # sure enough that pseudo-labels count
    return net


def batches(count: int, size: int = 8) -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.rand(size, 3, 12, 12, generator=generator) for _ in range(count)]


def copy_of(net: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in net.state_dict().items()}


def assert_equal(mine: dict[str, Tensor], theirs: dict[str, Tensor]) -> None:
    assert mine.keys() == theirs.keys()
    for name, value in mine.items():
        assert torch.equal(value, theirs[name]), name


def entropy(logits: Tensor) -> Tensor:
    return -(logits.softmax(1) * logits.log_softmax(1)).sum(1).mean()


def test_tent_is_the_plain_loop() -> None:
    plain, mine = small_net(), small_net()
    norms = [m for m in plain if isinstance(m, nn.BatchNorm2d)]
    plain.requires_grad_(False)
    for norm in norms:
        norm.requires_grad_(True)
        norm.track_running_stats, norm.running_mean, norm.running_var = False, None, None
    optimizer = torch.optim.Adam([p for p in plain.parameters() if p.requires_grad], 1e-3)
    with gala.Adapter(mine, "tent") as adapter:
        for images in batches(6):
            logits = plain(images)
            optimizer.zero_grad()
            entropy(logits).backward()
            optimizer.step()
            torch.testing.assert_close(adapter(images), logits, rtol=1e-5, atol=1e-5)
        for norm, own in zip(norms, [mine[1], mine[4]], strict=True):
            torch.testing.assert_close(own.weight, norm.weight, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    "norm",
    ["source", "batch", "blend", "running", "running:gradient=yes", "adaptive", "balanced"],
)
def test_the_module_is_the_source_again_at_the_end(norm: str) -> None:
    net = small_net().train()
    net[0].weight.grad = torch.ones_like(net[0].weight)
    pointers = [p.data_ptr() for p in net.parameters()]
    before, kept = copy_of(net), net[0].weight.grad
    with gala.Adapter(net, loss="entropy", select="all", norm=norm) as adapter:
        for images in batches(3):
            adapter(images)
        assert not torch.equal(net[0].weight, before["0.weight"])
    assert_equal(copy_of(net), before)
    assert [p.data_ptr() for p in net.parameters()] == pointers
    assert net[0].weight.grad is kept
    assert all(p.requires_grad for p in net.parameters())
    assert all(m.training for m in net.modules())
    assert not any("forward" in m.__dict__ for m in net.modules())
    with pytest.raises(gala.Error, match="the adapter is closed"):
        adapter(batches(1)[0])


def test_norm_batch_leaves_the_statistics_alone_and_source_uses_them() -> None:
    net, images = small_net(), batches(1)[0]
    with torch.no_grad():
        expected = net.eval()(images)
    with gala.Adapter(net, select="none") as adapter:
        assert torch.equal(adapter(images), expected)
    with gala.Adapter(net, select="none", norm="blend:weight=0") as adapter:
        torch.testing.assert_close(adapter(images), expected)
    with torch.no_grad():
        in_training = copy.deepcopy(net).train()(images)
    with gala.Adapter(net, select="none", norm="batch") as adapter:
        torch.testing.assert_close(adapter(images), in_training)
    with gala.Adapter(net, select="none", norm="blend:weight=1") as adapter:
        torch.testing.assert_close(adapter(images), in_training)


def test_running_statistics_follow_as_pytorchs_own() -> None:
    net = small_net()
    theirs = copy.deepcopy(net).train()
    with gala.Adapter(net, select="none", norm="running:momentum=0.1") as adapter:
        for images in batches(1):
            adapter(images)
            with torch.no_grad():
                theirs(images)
        torch.testing.assert_close(net[1].running_mean, theirs[1].running_mean)
        torch.testing.assert_close(net[1].running_var, theirs[1].running_var)


def test_layers_are_tensors_modules_or_blocks() -> None:
    names = {}
    for granularity in ("tensor", "module"):
        with gala.Adapter(small_net(), select="all", granularity=granularity) as adapter:
            names[granularity] = adapter.layers
    assert names["module"] == ["0", "1", "3", "4", "8"]
    assert names["tensor"][:4] == ["0.weight", "0.bias", "1.weight", "1.bias"]
    with gala.Adapter(small_net(), loss="shot", select="all") as adapter:
        assert adapter.layers == ["0", "1", "3", "4"]  # its head is frozen
    with gala.Adapter(small_net(), select="all", include=["1", "4.*"]) as adapter:
        assert adapter.layers == ["1", "4"]


def test_what_was_frozen_stays() -> None:
    net = small_net()
    net[0].requires_grad_(False)
    before = net[0].weight.clone()
    with gala.Adapter(net, loss="entropy", select="all", norm="batch") as adapter:
        adapter(batches(1)[0])
        assert "0" not in adapter.layers
        assert torch.equal(net[0].weight, before)
        assert net[0].weight.grad is None


def test_shared_parameters_move_once() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(6, 6)
            self.second = nn.Linear(6, 6)
            self.second.weight = self.first.weight
            self.head = nn.Linear(6, 3)

        def forward(self, images: Tensor) -> Tensor:
            return self.head(self.second(self.first(images.flatten(1)).relu()).relu())

    torch.manual_seed(0)
    net = Tied()
    before = net.first.weight.clone()
    images = torch.rand(4, 6)
    expected = torch.autograd.grad(entropy(net(images)), net.first.weight)[0]
    with gala.Adapter(net, loss="entropy", select="all", optim="sgd:rate=0.1") as adapter:
        adapter(images)
        assert net.first.weight is net.second.weight
        torch.testing.assert_close(net.first.weight.data, before - 0.1 * expected)
    assert torch.equal(net.first.weight, before)


def test_in_the_shadow_the_source_answers() -> None:
    net = small_net().eval()
    with torch.no_grad():
        expected = [net(images) for images in batches(3)]
    with gala.Adapter(net, "tent", shadow=True) as adapter:
        for images, logits in zip(batches(3), expected, strict=True):
            assert torch.equal(adapter(images), logits)
            assert adapter.last is not None
            assert adapter.last.adapted is not None
            assert not torch.equal(adapter.last.adapted, logits)


def test_the_guard_stops_and_goes_back() -> None:
    for guard in ("stop", "rollback"):
        with gala.Adapter(
            small_net(),
            loss="entropy",
            select="all",
            optim="adam:rate=0.5",
            norm="batch",
            guard=f"{guard}:horizon=8,every=1",
        ) as adapter:
            for images in batches(6):
                adapter(images)
            assert adapter.stopped == (guard == "stop")
            assert (adapter.totals.rollbacks > 0) == (guard == "rollback")


@pytest.mark.parametrize("norm", ["batch", "source", "running", "adaptive", "blend:weight=0.3"])
def test_the_guard_asks_the_source_before_it_calls_far_a_collapse(norm: str) -> None:
    def run(guard: str) -> tuple[list[torch.Tensor], list[gala.HealthEvent]]:
        answers, events = [], []
        slow = "adam:rate=1e-6"
        with gala.Adapter(
            small_net(), loss="entropy", head="adapt", optim=slow, norm=norm, guard=guard
        ) as adapter:
            for number, images in enumerate(batches(9)):
                if number == 8:  # every answer is another one from now on
                    with torch.no_grad():
                        for parameter in list(adapter.module.parameters())[-2:]:
                            parameter.neg_()
                answers.append(adapter(images).clone())
                if adapter.last is not None and adapter.last.health is not None:
                    events.append(adapter.last.health)
        return answers, events

    answers, events = run("warn:horizon=8,every=1,displacement=1e-9,diversity=0")
    for event in events[:-1]:
        assert event.reasons == ["displacement"]
        assert event.agreement is not None
        assert event.agreement > 0.9
    assert events[-1].collapsed
    assert events[-1].reasons == ["disagreement", "displacement"]
    unwatched, _ = run("off")
    assert all(torch.equal(a, b) for a, b in zip(answers, unwatched, strict=True))


def test_a_broken_image_is_nobodys_answer_and_spoils_no_other() -> None:
    net, images = small_net(), batches(1)[0].clone()
    images[2] = float("nan")
    before = copy_of(net)
    with gala.Adapter(net, loss="entropy", select="all", norm="batch") as adapter:
        logits = adapter(images)
        assert adapter.last is not None
        assert adapter.last.unanswered == [2]
        assert adapter.last.predictions[2] == -1
        assert adapter.last.record is not None
        assert adapter.last.record.refused
        finite = torch.isfinite(logits).all(1)
        assert finite.sum() == 7
        assert_equal(
            {n: v for n, v in copy_of(net).items() if n in before and "run" not in n},
            {n: v for n, v in before.items() if "run" not in n},
        )


def test_callbacks_see_every_batch(tmp_path: pathlib.Path) -> None:
    seen = []
    with gala.Adapter(
        small_net(), "gala", callbacks=[lambda a: seen.append(a.totals.batches)]
    ) as adapter:
        for images in batches(3):
            adapter(images)
    assert seen == [1, 2, 3]


def test_last_says_what_moved_and_why() -> None:
    with gala.Adapter(small_net(), "gala") as adapter:
        for number, images in enumerate(batches(3)):
            adapter(images)
            assert adapter.last is not None
            assert len(adapter.last.selected) == (4 if number == 0 else 1)
        assert adapter.last is not None
        moved = adapter.last.selected[0]
        assert adapter.last.cosine[moved] == max(adapter.last.cosine.values())
        assert adapter.last.weights[moved] == 1


def test_a_second_adapter_must_wait() -> None:
    net = small_net()
    with gala.Adapter(net, "tent"), pytest.raises(gala.Error, match="has an adapter already"):
        gala.Adapter(net, "tent")
    gala.Adapter(net, "tent").close()


def test_an_adapter_that_is_dropped_gives_the_module_back() -> None:
    net = small_net()
    before = copy_of(net)
    adapter = gala.Adapter(net, "tent")
    adapter(batches(1)[0])
    del adapter
    assert_equal(copy_of(net), before)
    gala.Adapter(net, "tent").close()


class FakeWriter:
    """Takes what the tensorboard package would write."""

    written: list[tuple[str, float, int]] = []  # noqa: RUF012

    def __init__(self, folder: str) -> None:
        self.written.clear()

    def add_scalar(self, name: str, value: float, step: int) -> None:
        self.written.append((name, value, step))


def test_tensorboard_gets_losses_and_cosines(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = FakeWriter  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    board = gala.callbacks.TensorBoard("nowhere")
    with gala.Adapter(small_net(), "gala", callbacks=[board]) as adapter:
        for images in batches(2):
            adapter(images)
        assert adapter.last is not None
        assert ("gala/loss", adapter.last.loss, 2) in FakeWriter.written
        assert ("cosine/3", adapter.last.cosine["3"], 2) in FakeWriter.written
