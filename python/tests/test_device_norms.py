"""Batch norms by kernels, with a stand-in for the GPU's."""

import copy
import io
from typing import Any

import gala_tta as gala
import pytest
import torch
from gala_tta import _device, _device_norms
from gala_tta._device_norms import KernelForward, fits
from gala_tta._norms import Mode, Norms
from stand_in_norm import StandIn
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional

LAST = torch.channels_last


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the stand-in where a GPU's kernels would be."""
    monkeypatch.setattr(_device_norms, "kernels_for", lambda device: StandIn)
    monkeypatch.setattr(_device, "stream_of", lambda tensor: 17)


def norm_layer(channels: int) -> nn.BatchNorm2d:
    generator = torch.Generator().manual_seed(channels)
    layer = nn.BatchNorm2d(channels, eps=1e-3).eval()
    with torch.no_grad():
        for place in (layer.weight, layer.bias, layer.running_mean, layer.running_var):
            assert place is not None
            place.copy_(torch.rand(channels, generator=generator) + 0.5)
    return layer


def maps_like(*sizes: int, dtype: torch.dtype = torch.float32) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(sizes, generator=generator).to(dtype).contiguous(memory_format=LAST)


def put(layer: nn.Module, mode: str) -> tuple[Norms, KernelForward]:
    norms = Norms(layer, Mode(mode))
    taken = layer.__dict__["forward"]
    assert isinstance(taken, KernelForward)
    return norms, taken


def gradients_of(output: Tensor, toward: Tensor, *of: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad((output.double() * toward).sum(), of)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("mode", ["source", "batch"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("sizes", [(3, 4, 5, 3), (2, 64, 3, 1), (5, 12, 1, 1)])
def test_output_and_gradients_are_those_of_pytorch(
    mode: str, dtype: torch.dtype, sizes: tuple[int, ...]
) -> None:
    layer, input = norm_layer(sizes[1]), maps_like(*sizes, dtype=dtype).requires_grad_()
    toward = maps_like(*sizes, dtype=torch.double).flip(0)
    _, taken = put(layer, mode)
    output = layer(input)
    assert taken.taken
    assert output.dtype == dtype
    assert output.is_contiguous(memory_format=LAST)
    found = [output, *gradients_of(output, toward, input, layer.weight, layer.bias)]

    wide = [each.detach().double().requires_grad_() for each in (input, layer.weight, layer.bias)]
    statistics = (layer.running_mean, layer.running_var)
    mean, var = (None if each is None else each.double() for each in statistics)
    assert (mean is None) == (mode == "batch")
    expected = functional.batch_norm(wide[0], mean, var, *wide[1:], mean is None, 0.0, layer.eps)
    expected_all = [expected, *gradients_of(expected, toward, *wide)]
    # Rounding of a bfloat16: of the result, and of the gradient that backward gets.
    close = {"rtol": 2e-5, "atol": 2e-5} if dtype == torch.float32 else {"rtol": 3e-2, "atol": 3e-2}
    for mine, theirs in zip(found, expected_all, strict=True):
        torch.testing.assert_close(mine.double(), theirs, **close)


@pytest.mark.usefixtures("kernels")
def test_gradients_come_in_any_layout_and_only_where_asked() -> None:
    layer, input = norm_layer(8), maps_like(4, 8, 3, 3)
    _, taken = put(layer, "source")
    whole = input.clone(memory_format=torch.preserve_format).requires_grad_()
    layer(whole).mean((2, 3)).sum().backward()  # an expanded gradient: no strides of its own
    factor = layer.weight * (layer.running_var + layer.eps).rsqrt()  # type: ignore[operator]
    expected = (factor / 9).view(1, -1, 1, 1).expand_as(input)
    assert whole.grad is not None
    torch.testing.assert_close(whole.grad, expected)

    # A gradient that begins between two numbers that are read at once.
    toward = torch.zeros(input.numel() + 1)[1:].view(4, 3, 3, 8).permute(0, 3, 1, 2)
    assert toward.data_ptr() % 16
    toward.copy_(expected)
    (found,) = torch.autograd.grad(layer(whole), whole, toward)
    torch.testing.assert_close(found, expected * factor.view(1, -1, 1, 1))

    layer.weight.requires_grad_(False)
    layer.zero_grad()
    layer(input).sum().backward()
    assert taken.taken
    assert layer.weight.grad is None
    assert layer.bias.grad is not None
    torch.testing.assert_close(layer.bias.grad, torch.full((8,), 36.0))
    layer.bias.requires_grad_(False)
    assert not layer(input).requires_grad
    with torch.no_grad():
        layer.bias.requires_grad_()
        assert not layer(input).requires_grad


@pytest.mark.usefixtures("kernels")
def test_one_norm_at_two_places_gets_both_gradients() -> None:
    layer, input = norm_layer(4), maps_like(3, 4, 2, 2)
    found = []
    for mode in ("source", None):
        norms = put(layer, mode)[0] if mode else None
        layer(layer(input).relu()).square().sum().backward()
        assert layer.weight.grad is not None
        found.append(layer.weight.grad.clone())
        layer.zero_grad()
        if norms is not None:
            norms.release()
    torch.testing.assert_close(*found)


@pytest.mark.usefixtures("kernels")
def test_what_backward_needs_must_not_change_before_it() -> None:
    layer, input = norm_layer(4), maps_like(3, 4, 2, 2).requires_grad_()
    put(layer, "source")
    hidden = input * 1
    output = layer(hidden)
    with torch.no_grad():
        hidden.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        output.sum().backward()


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("mode", ["source", "batch"])
@pytest.mark.parametrize("frozen", [False, True])
def test_a_gradient_can_be_differentiated_again(mode: str, frozen: bool) -> None:
    layer, input = norm_layer(4), maps_like(3, 4, 2, 2).requires_grad_()
    layer.weight.requires_grad_(not frozen)
    found = []
    for by_kernels in (True, False):
        norms = Norms(layer, Mode(mode))
        taken = layer.__dict__["forward"]
        if not by_kernels:
            layer.__dict__.pop("forward")
        (first,) = torch.autograd.grad(layer(input).pow(3).sum(), input, create_graph=True)
        assert taken.taken == by_kernels
        of = [each for each in (input, layer.weight, layer.bias) if each.requires_grad]
        found.append([first, *torch.autograd.grad(first.square().sum(), of)])
        norms.release()
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


VECTOR = torch.zeros(8)
FITTING = torch.zeros(2, 3, 5, 8).permute(0, 3, 1, 2)


@pytest.mark.parametrize(
    ("input", "vectors"),
    [
        (torch.zeros(2, 8, 3, 5), [VECTOR]),  # channels first
        (torch.zeros(2, 3, 5, 6).permute(0, 3, 1, 2), [torch.zeros(6)]),
        (FITTING.half(), [VECTOR]),
        (FITTING.double(), [VECTOR]),
        (FITTING[0], [VECTOR]),
        (FITTING[:0], [VECTOR]),
        (FITTING[..., ::2], [VECTOR]),
        (torch.zeros(241)[1:].view(2, 3, 5, 8).permute(0, 3, 1, 2), [VECTOR]),
        (FITTING, [VECTOR, None]),  # no affine part
        (FITTING, [VECTOR.double()]),
        (FITTING, [VECTOR, torch.zeros(9)[1:]]),  # not where four numbers can be read at once
        (FITTING, [torch.zeros(16)[::2]]),
        (FITTING, [torch.zeros(12)]),
        (FITTING, [torch.zeros(8, device="meta")]),
    ],
)
def test_what_does_not_fit(input: Tensor, vectors: list[Any]) -> None:
    assert fits(FITTING, (VECTOR, VECTOR))
    assert fits(FITTING.bfloat16(), (VECTOR,))
    assert not fits(input, tuple(vectors))


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("mode", ["source", "batch"])
def test_what_does_not_fit_goes_the_way_of_the_class(mode: str) -> None:
    cases: list[tuple[nn.BatchNorm2d, Tensor]] = [
        (norm_layer(8), torch.rand(2, 8, 3, 5)),
        (norm_layer(6), maps_like(2, 6, 3, 5)),
        (norm_layer(8).double(), maps_like(2, 8, 3, 5, dtype=torch.double)),
        (nn.BatchNorm2d(8, affine=False).eval(), maps_like(2, 8, 3, 5)),
    ]
    for layer, input in cases:
        norms, taken = put(layer, mode)
        found = layer(input)
        assert not taken.taken
        assert norms.on_kernels == 0
        assert torch.equal(found, nn.BatchNorm2d.forward(layer, input))
        norms.release()
    layer = norm_layer(8)
    _, taken = put(layer, mode)
    with pytest.raises(ValueError, match="expected 4D input"):
        layer(torch.rand(2, 8, 3))
    layer.train()
    layer(maps_like(2, 8, 3, 5))
    assert not taken.taken  # as PyTorch trains


@pytest.mark.usefixtures("kernels")
def test_a_single_value_has_no_statistics() -> None:
    layer = norm_layer(8)
    put(layer, "batch")
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        layer(maps_like(1, 8, 1, 1))


@pytest.mark.usefixtures("kernels")
def test_other_norms_are_left_alone() -> None:
    class Own(nn.BatchNorm2d):
        def forward(self, input: Tensor) -> Tensor:
            return super().forward(input).relu()

    for layer in (Own(8), nn.BatchNorm1d(8), nn.BatchNorm3d(8), nn.SyncBatchNorm(8)):
        norms = Norms(layer, Mode("source"))
        assert "forward" not in layer.__dict__
        norms.release()


@pytest.mark.usefixtures("kernels")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_whoever_watches_operators_sees_pytorchs() -> None:
    layer, input = norm_layer(8), maps_like(2, 8, 3, 5)
    expected = nn.BatchNorm2d.forward(layer, input)
    _, taken = put(layer, "source")
    compiled = torch.compile(layer, backend="eager", fullgraph=True)
    assert torch.equal(compiled(input), expected)
    traced = torch.jit.trace(layer, input, check_trace=False)
    assert "aten::batch_norm" in str(traced.inlined_graph)
    slope = torch.func.grad(lambda x: layer(x).sum())(input)
    assert slope.shape == input.shape
    with forward_ad.dual_level():
        way = forward_ad.unpack_dual(layer(forward_ad.make_dual(input, torch.ones_like(input))))
    factor = layer.weight * (layer.running_var + layer.eps).rsqrt()  # type: ignore[operator]
    torch.testing.assert_close(way.tangent, factor.view(1, -1, 1, 1).expand_as(input))
    assert not taken.taken
    torch.testing.assert_close(layer(input), expected)
    assert taken.taken


def network() -> nn.Sequential:
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        nn.Conv2d(8, 12, 3),
        nn.BatchNorm2d(12),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(12, 5),
    )
    with torch.no_grad():
        net[-1].weight.mul_(20)
    return net.to(memory_format=LAST)  # type: ignore[no-any-return, call-overload]


@pytest.mark.parametrize("norm", ["source", "batch"])
def test_on_the_cpu_nothing_stands_in_a_norms_place(norm: str) -> None:
    net = network()
    with gala.Adapter(net, loss="entropy", select="all", norm=norm) as adapter:
        adapter(maps_like(4, 3, 9, 9))
        assert not any("forward" in each.__dict__ for each in net.modules())


@pytest.mark.parametrize("norm", ["source", "batch"])
def test_an_adapter_makes_the_same_steps(
    norm: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    answers, cosines, taken = [], [], []
    for with_kernels in (False, True):
        if with_kernels:
            request.getfixturevalue("kernels")
        net = network()
        with gala.Adapter(
            net, loss="entropy", select="gala:window=3", norm=norm, guard="warn:every=2"
        ) as adapter:
            for number in range(6):
                answers.append(adapter(maps_like(6, 3, 9, 9) * (1 + number)))
                assert adapter.last is not None
                cosines += [s.cosines for s in adapter.last.steps]
            assert adapter._norms is not None
            taken.append(adapter._norms.on_kernels)
        assert not any("forward" in each.__dict__ for each in net.modules())
    assert taken == [0, 2]
    for before, after in zip(answers[:6], answers[6:], strict=True):
        torch.testing.assert_close(before, after, rtol=1e-3, atol=1e-3)
    for before, after in zip(cosines[:6], cosines[6:], strict=True):
        assert before == pytest.approx(after, abs=1e-3)


@pytest.mark.usefixtures("kernels")
def test_replicas_share_no_kernels() -> None:
    for wrapped in (nn.DataParallel(network()), nn.Sequential(nn.DataParallel(network()))):
        with gala.Adapter(wrapped, loss="entropy", select="all", norm="source") as adapter:
            adapter(maps_like(4, 3, 9, 9))
            assert not any("forward" in each.__dict__ for each in wrapped.modules())


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize(
    ("layout", "norm", "notes"),
    [
        (torch.contiguous_format, "source", 1),
        (torch.contiguous_format, "batch", 1),
        (torch.contiguous_format, "adaptive", 0),  # no kernels, whatever the layout
        (LAST, "source", 0),
    ],
)
def test_where_the_layout_alone_keeps_norms_from_the_kernels_that_is_said_once(
    layout: torch.memory_format, norm: str, notes: int
) -> None:
    net = network().to(memory_format=layout)  # type: ignore[call-overload]
    images = maps_like(4, 3, 9, 9).contiguous(memory_format=layout)
    with gala.Adapter(net, loss="entropy", select="all", norm=norm) as adapter:
        assert adapter.notes == []
        adapter(images)
        adapter.reset()
        adapter(images)
        assert len(adapter.notes) == notes
        assert all("module.to(memory_format=torch.channels_last)" in n for n in adapter.notes)


@pytest.mark.usefixtures("kernels")
def test_copies_of_an_adapted_module_are_pytorchs() -> None:
    net, images = network(), maps_like(4, 3, 9, 9)
    with gala.Adapter(net, select="none", norm="source") as adapter:
        expected = adapter(images)
        file = io.BytesIO()
        torch.save(net, file)
        assert b"gala_tta" not in file.getvalue()
        file.seek(0)
        for other in (copy.deepcopy(net), torch.load(file, weights_only=False)):
            assert not any(
                isinstance(each.__dict__.get("forward"), KernelForward) for each in other.modules()
            )
            torch.testing.assert_close(other(images), expected)
            with torch.no_grad():
                other[1].weight.zero_()  # its own weight, not the first one's
            assert not torch.allclose(other(images), expected, atol=1e-3)
        torch.testing.assert_close(adapter(images), expected)
