"""The binding of the numeric heart."""

import math

import gala_tta
import pytest
import torch
from gala_tta import _core


def test_a_spec_reads_back_in_one_spelling() -> None:
    assert gala_tta.canonical_spec('gala:window=20,x="a,b"') == 'gala:window=20,x="a,b"'


def test_options_come_with_the_defaults_of_the_registry() -> None:
    assert _core.parse_parts("loss", "shot:beta=0.5+entropy") == [
        ("shot", {"beta": 0.5, "theta": 0.1}),
        ("entropy", {"below": 0.0}),
    ]
    assert _core.parse_parts("after_step", "none") == []
    assert _core.parse_parts("select", "norm_affine:skip=layer4.*")[0][1] == {"skip": ["layer4.*"]}


def test_a_recipe_is_a_set_of_options() -> None:
    options = _core.method_options("roid", {"select": "gala", "episodic": True, "seed": 3})
    assert options["loss"] == "soft_likelihood_ratio+consistency"
    assert options["select"] == "gala"
    assert options["episodic"] is True
    assert options["seed"] == 3
    assert options["include"] == []


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: _core.parse_parts("loss", "shto"), 'unknown loss "shto" (did you mean "shot"?'),
        (lambda: _core.method_options("rpid", {}), 'unknown method "rpid" (did you mean "roid"?'),
        (lambda: _core.method_options("", {"foo": 1}), 'unknown option "foo"'),
        (lambda: _core.method_options("", {"seed": "x"}), 'seed cannot be "x" (expected integer)'),
        (lambda: _core.parse_norm("blend:weight=2"), "weight must be from 0 to 1, not 2"),
        (lambda: _core.parse_parts("loss", "consistency:form=x"), 'option form cannot be "x"'),
        (
            lambda: _core.parse_parts("samples", "deyo:drop=1"),
            "sample rule deyo: drop must lie in [-1, 1), not 1",
        ),
        (
            lambda: _core.parse_parts("store", "window:length=0"),
            "store window: length must lie in 1 .. 65536, not 0",
        ),
        (lambda: _core.method_options("", {"seed": -1}), "seed must be at least 0, not -1"),
        (
            lambda: _core.method_options("", {"inner_steps": 0}),
            "inner_steps must lie in 1 .. 10000, not 0",
        ),
        (
            lambda: _core.method_options("", {"inner_steps": 10**12}),
            "inner_steps must lie in 1 .. 10000, not 1000000000000",
        ),
        (
            lambda: _core.parse_parts("view", "augment:noise=2"),
            "view augment: noise must lie in [0, 1], not 2",
        ),
        (
            lambda: _core.parse_parts("view", "augmix:severity=0"),
            "view augmix: severity must lie in [0.1, 10], not 0",
        ),
        (
            lambda: _core.parse_parts("view", "patches:grid=33"),
            "view patches: grid must lie in [2, 32], not 33",
        ),
        (lambda: _core.Selector("gala:windw=3", 0), 'has no option "windw"'),
        (lambda: _core.Guard("wran", 10), 'unknown guard "wran"'),
    ],
)
def test_errors_have_the_words_of_the_library(call, words) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(_core.Error) as error:
        call()
    assert words in str(error.value)
    assert isinstance(error.value, ValueError)


def stepper_of(values: torch.Tensor, select: str, optimizer: str, counts: list[int]):  # type: ignore[no-untyped-def]
    begins, size = _core.lay_out(counts)
    assert size == values.numel()
    tensors = [(f"t{i}", [n], [1]) for i, n in enumerate(counts)]
    layers = [(f"t{i}", [i]) for i in range(len(counts))]
    return begins, _core.Stepper(
        tensors, values.data_ptr(), layers, optimizer, _core.Selector(select, 0), "", 1, 0
    )


def test_a_step_of_sgd_moves_by_rate_times_gradient() -> None:
    counts = [3, 5]
    _, size = _core.lay_out(counts)
    values = torch.zeros(size)
    begins, stepper = stepper_of(values, "all", "sgd:rate=0.5", counts)
    gradients = [torch.arange(1.0, 4.0), torch.ones(5)]
    loss = torch.tensor(2.0)
    stepper.begin()
    stepper.measure([g.data_ptr() for g in gradients], loss.data_ptr())
    record = stepper.move(2.0, [], 0.0)
    assert record.weights == [1.0, 1.0]
    assert record.cosines == [1.0, 1.0]
    assert record.update_norms == pytest.approx([0.5 * math.sqrt(14), 0.5 * math.sqrt(5)])
    assert values[begins[0] : begins[0] + 3].tolist() == [-0.5, -1.0, -1.5]
    assert values[begins[1] : begins[1] + 5].tolist() == [-0.5] * 5


def test_a_gradient_that_is_not_finite_is_refused() -> None:
    values = torch.zeros(_core.lay_out([2])[1])
    _, stepper = stepper_of(values, "all", "adam", [2])
    gradient, loss = torch.tensor([1.0, math.nan]), torch.tensor(1.0)
    stepper.begin()
    stepper.measure([gradient.data_ptr()], loss.data_ptr())
    record = stepper.move(1.0, [], 0.0)
    assert record.refused
    assert not values.any()


def test_the_guard_calls_a_single_class_a_collapse_where_the_source_sees_others() -> None:
    guard = _core.Guard("warn:horizon=20,every=1", 4)
    healthy = torch.eye(4).repeat(5, 1) * 9
    narrow = torch.eye(4)[:1].repeat(20, 1) * 9
    assert guard.observe(_core.look_at(healthy.data_ptr(), 20, 4))
    assert not guard.judge(0.0, True).collapsed
    answers = _core.look_at(narrow.data_ptr(), 20, 4)
    guard.observe(answers)
    assert guard.asks_source(0.0)
    for theirs, reasons in (
        (answers.predictions, ["diversity"]),
        ([0, 1, 2, 3] * 5, ["disagreement", "diversity"]),
    ):
        guard.compare(answers.predictions, theirs)
        event = guard.judge(0.0, True)
        assert event.reasons == reasons
        assert event.collapsed == (len(reasons) == 2)
