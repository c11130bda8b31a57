"""Closed forms of the parts, where the program is not there to compare with."""

from __future__ import annotations

import math
from typing import Any

import gala_tta as gala
import pytest
import torch
from gala_tta import _core
from gala_tta._around import AFTER_STEPS, PERTURBATIONS, RESET_RULES
from gala_tta._drift import DRIFTS
from gala_tta._loss_terms import LossInput, entropies
from gala_tta._losses import LOSSES, make_loss
from gala_tta._parts import Output, make_part
from gala_tta._penalties import PENALTIES
from gala_tta._probes import PROBES
from gala_tta._readouts import READOUTS
from gala_tta._samples import SAMPLE_RULES, SampleInput
from gala_tta._stores import STORES
from gala_tta._teachers import TEACHERS
from gala_tta._views import VIEWS
from torch import Tensor, nn

UNIFORM = torch.zeros(4, 5)
SURE = 50 * torch.eye(5)


def value(spec: str, logits: Tensor, **more: Any) -> float:
    return float(make_loss(spec).evaluate(LossInput(Output(logits), **more))[0])


def test_losses_of_answers_that_are_all_alike() -> None:
    assert value("entropy", UNIFORM) == pytest.approx(math.log(5))
    assert value("information_maximisation", UNIFORM) == pytest.approx(0, abs=1e-4)
    assert value("pseudo_label", UNIFORM) == 0  # nobody is confident
    assert value("pseudo_label:beta=0", UNIFORM) == pytest.approx(math.log(5))
    assert value("generalised_cross_entropy:q=0.5", UNIFORM) == pytest.approx(
        2 * (1 - math.sqrt(0.2))
    )
    assert value("soft_likelihood_ratio", UNIFORM) == pytest.approx(-math.log(0.25 + 1e-5))


def test_losses_of_sure_and_diverse_answers() -> None:
    assert value("entropy", SURE) == pytest.approx(0, abs=1e-6)
    assert value("information_maximisation", SURE) == pytest.approx(-math.log(5), abs=1e-3)
    assert value("shot", SURE) == pytest.approx(-math.log(5), abs=1e-3)


def test_a_sum_of_losses_is_their_sum() -> None:
    logits = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    assert value("entropy+shot", logits) == pytest.approx(
        value("entropy", logits) + value("shot", logits), rel=1e-6
    )


def test_consistency_with_itself_is_the_entropy() -> None:
    logits = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    mean = float(entropies(logits).mean())
    assert value("consistency:all=yes", logits, view=Output(logits)) == pytest.approx(mean)
    per_class = value("consistency:all=yes,per_class=0.01", logits, view=Output(logits))
    assert per_class == pytest.approx(0.04 * mean)


def test_weights_scale_the_images() -> None:
    logits = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    weights = torch.tensor([2.0, 0.0, 0.0, 0.0])
    assert value("entropy", logits, weights=weights) == pytest.approx(
        2 * float(entropies(logits)[0]) / 4
    )


def test_eta_takes_sure_and_new_images() -> None:
    rule = make_part("samples", "eta", SAMPLE_RULES)
    assert rule is not None
    logits = torch.cat([SURE[:1], UNIFORM[:1]])
    weights = rule.weigh(SampleInput(Output(logits)))
    assert weights[0] == pytest.approx(2 * math.exp(0.4 * math.log(5)), rel=1e-4)
    assert weights[1] == 0
    assert rule.weigh(SampleInput(Output(logits)))[0] == 0  # not new any more
    rule.reset()
    assert rule.weigh(SampleInput(Output(logits)))[0] > 0


def test_certain_means_over_the_images_it_keeps() -> None:
    rule = make_part("samples", "certain", SAMPLE_RULES)
    assert rule is not None
    logits = torch.cat([SURE[:2], UNIFORM])
    assert rule.weigh(SampleInput(Output(logits))).tolist() == [3, 3, 0, 0, 0, 0]


class FakeArena:
    """Two numbers, and the source they came from."""

    def __init__(self, values: list[float], source: list[float]) -> None:
        self.values, self.source = torch.tensor(values), torch.tensor(source)
        self.slots = [type("Slot", (), {"parameter": self.values})()]
        self.device = self.values.device

    def views(self, buffer: Tensor) -> list[Tensor]:
        return [buffer]


def test_after_steps() -> None:
    arena: Any = FakeArena([1.0, 3.0], [0.0, 1.0])
    ensemble = make_part("after_step", "ensemble:source=0.25", AFTER_STEPS)
    assert ensemble is not None
    ensemble.after(arena, 0, 1)
    assert arena.values.tolist() == [0.75, 2.5]
    restore = make_part("after_step", "restore:share=1", AFTER_STEPS)
    assert restore is not None
    restore.after(arena, 0, 1)
    assert torch.equal(arena.values, arena.source)


def test_penalties_pull_to_the_source() -> None:
    arena: Any = FakeArena([1.0, 3.0], [0.0, 1.0])
    penalty = make_part("penalty", "distance:weight=0.5", PENALTIES)
    assert penalty is not None
    penalty._source = arena.source
    gradients: list[Tensor | None] = [None]
    penalty.add(arena, gradients)
    assert gradients[0] is not None
    assert gradients[0].tolist() == [1.0, 2.0]


def test_sharpness_goes_along_the_gradient_and_back() -> None:
    arena: Any = FakeArena([1.0, 1.0], [0.0, 0.0])
    sam = make_part("perturb", "sam:rho=0.5", PERTURBATIONS)
    assert sam is not None
    sam.leave(arena, [torch.tensor([3.0, 4.0])])
    torch.testing.assert_close(arena.values, torch.tensor([1.3, 1.4]))
    sam.come_back(arena)
    assert arena.values.tolist() == [1.0, 1.0]


def test_reset_rules() -> None:
    every = make_part("reset", "every:steps=3", RESET_RULES)
    loss = make_part("reset", "loss:below=0.5,keep=0.5", RESET_RULES)
    narrow = make_part("reset", "concentration:above=0.5,keep=0", RESET_RULES)
    assert every is not None
    assert loss is not None
    assert narrow is not None
    assert [every.is_due(0, SURE) for _ in range(3)] == [False, False, True]
    assert [loss.is_due(each, SURE) for each in (1.0, 0.1, 0.1)] == [False, False, True]
    assert not narrow.is_due(0, SURE)
    assert narrow.is_due(0, SURE[:1].repeat(4, 1))


def test_readouts_leave_rows_that_are_not_finite() -> None:
    head = nn.Linear(3, 5)
    logits = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))
    logits[1] = math.nan
    for name in ("prior", "lame", "t3a"):
        readout = make_part("readout", name, READOUTS)
        assert readout is not None
        readout.attach(head)
        answer = readout.correct(Output(logits, torch.rand(6, 3)))
        assert torch.isfinite(answer).all(1).tolist() == [True, False, True, True, True, True]


def test_looks_are_drawn_by_seed_and_number() -> None:
    images = torch.rand(2, 3, 16, 16)
    for name in ("augment", "patches", "flip"):
        view = make_part("view", name, VIEWS)
        assert view is not None
        view.draw(1, 2, 2)
        first, other = view.look(images, 0), view.look(images, 1)
        view.draw(1, 2, 2)
        assert torch.equal(view.look(images, 0), first)
        assert torch.equal(first, other) == (name == "flip")
        if name == "patches":  # the same numbers in another order
            assert torch.equal(first.flatten(1).sort().values, images.flatten(1).sort().values)


def test_views_say_what_keeps_them_out_of_a_graph() -> None:
    for name, words in (
        ("augment", "made on the host"),
        ("augmix", "numbers from the host at every look"),
        ("patches", "made on the host"),
        ("flip", ""),
    ):
        view = make_part("view", name, VIEWS)
        assert view is not None
        view.attach(torch.device("cpu"), (0.5, 0.5, 0.5), (0.2, 0.2, 0.2))
        assert words in view.uncaptured, name
        assert bool(view.uncaptured) == bool(words), name


def test_every_part_of_the_library_is_in_python() -> None:
    known: dict[str, Any] = {
        "loss": LOSSES,
        "samples": SAMPLE_RULES,
        "store": STORES,
        "view": VIEWS,
        "teacher": TEACHERS,
        "perturb": PERTURBATIONS,
        "penalty": PENALTIES,
        "drift": DRIFTS,
        "after_step": AFTER_STEPS,
        "reset": RESET_RULES,
        "readout": READOUTS,
        "probe": PROBES,
    }
    made_by_the_heart = {"select", "optimizer", "norm", "method"}
    assert set(_core.kinds()) == set(known) | made_by_the_heart
    for kind, parts in known.items():
        assert {part.name for part in gala.list_parts(kind)} == set(parts)
