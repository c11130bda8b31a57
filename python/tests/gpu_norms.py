"""The part of gpu_trial.py that looks at batch norms: our kernels beside PyTorch's in double."""

from __future__ import annotations

from typing import Any

import torch
from gala_tta._device_norms import KernelForward
from gala_tta._norms import Mode, Norms
from torch import Tensor, nn
from torch.nn import functional

# How far a norm by our kernels may be from PyTorch's in double: maps beside the largest number of
# their channel (half a step of a bfloat16 is up to 2^-8), sums beside the sum of what they are made
# of, without signs.
NEAR = {"float32": 2e-5, "bfloat16": 4.1e-3, "sums": 2e-5}
SHAPES = ((8, 4, 7, 5), (3, 64, 13, 11), (3, 12, 1, 5), (2, 2048, 3, 3), (32, 64, 56, 56))


def make_case(
    sizes: tuple[int, ...], dtype: torch.dtype, device: str
) -> tuple[nn.BatchNorm2d, Tensor, Tensor]:
    """Return a norm, maps and the gradient of its output; the first channel has no variance."""
    generator = torch.Generator().manual_seed(sum(sizes))
    layer = nn.BatchNorm2d(sizes[1]).eval()
    with torch.no_grad():
        for place in (layer.weight, layer.running_var):
            place.uniform_(0.5, 2, generator=generator)  # type: ignore[union-attr]
        for place in (layer.bias, layer.running_mean):
            place.normal_(generator=generator)  # type: ignore[union-attr]
        layer.running_var[0] = 0  # type: ignore[index]
    input = 2 * torch.randn(sizes, generator=generator) + 1
    input[:, 0] = 0.75  # whose sums have no rounding, which the deviation of 0 would make large
    gradient = torch.randn(sizes, generator=generator)
    maps = (
        each.to(device, dtype).contiguous(memory_format=torch.channels_last)
        for each in (input, gradient)
    )
    return layer.to(device), *maps  # type: ignore[return-value]


def results(layer: nn.Module, input: Tensor, gradient: Tensor) -> list[Tensor]:
    """Output, and the gradients of maps, scale and shift."""
    given = input.detach().requires_grad_()
    output = layer(given)
    parameters = (given, layer.weight, layer.bias)
    return [output.detach(), *torch.autograd.grad(output, parameters, gradient)]


def distances(layer: nn.BatchNorm2d, input: Tensor, gradient: Tensor, own: bool) -> Any:
    """How far a norm's output and gradients are from those of PyTorch's in double."""
    found = results(layer, input, gradient)
    wide = [each.detach().double().requires_grad_() for each in (input, layer.weight, layer.bias)]
    statistics = (layer.running_mean, layer.running_var)
    mean, var = (None if own or each is None else each.double() for each in statistics)
    output = functional.batch_norm(wide[0], mean, var, *wide[1:], own, 0.0, layer.eps)
    toward = gradient.double()
    expected = [output.detach(), *torch.autograd.grad(output, wide, toward)]
    scale, shift = (each.detach().view(1, -1, 1, 1) for each in wide[1:])
    even = (output.detach() - shift) / scale
    every = toward.abs().sum((0, 2, 3))
    beside = [
        *(each.abs().amax((0, 2, 3), keepdim=True) for each in expected[:2]),
        (toward * even).abs().sum((0, 2, 3)) + every,
        every,
    ]
    names = ("output", "input", "scale", "shift")
    return {
        name: float(((mine - theirs).abs() / than).max())
        for name, mine, theirs, than in zip(names, found, expected, beside, strict=True)
    }


def captured_apart(layer: nn.BatchNorm2d, input: Tensor, gradient: Tensor) -> float:
    """How far a captured pass through a norm is from one that is not."""
    expected = results(layer, input, gradient)
    graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    still = torch.zeros_like(input)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        results(layer, still, gradient)
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        found = results(layer, still, gradient)
    still.copy_(input)
    graph.replay()
    torch.cuda.synchronize()
    return max(float((a - b).abs().max()) for a, b in zip(found, expected, strict=True))


def trial(device: str) -> dict[str, Any]:
    """Compare norms by our kernels with PyTorch's in double, and see who is left to PyTorch."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    found: dict[str, Any] = {"by_kernels": {}, "left": {}}
    for mode in ("source", "batch"):
        for dtype in (torch.float32, torch.bfloat16):
            for sizes in SHAPES if device == "cuda" else SHAPES[:-1]:
                layer, input, gradient = make_case(sizes, dtype, device)
                apart: dict[str, Any] = {"dtype": str(dtype).removeprefix("torch.")}
                held = Norms(layer, Mode(mode), kernels=False)
                apart["pytorch"] = distances(layer, input, gradient, mode == "batch")
                held.release()
                held = Norms(layer, Mode(mode))
                apart["kernels"] = distances(layer, input, gradient, mode == "batch")
                apart["taken"] = held.on_kernels
                if device == "cuda":
                    apart["captured"] = captured_apart(layer, input, gradient)
                held.release()
                apart["released"] = "forward" not in layer.__dict__
                found["by_kernels"][f"{mode} {apart['dtype']} {list(sizes)}"] = apart
    maps = torch.rand(4, 8, 5, 3, device=device)
    last = maps.contiguous(memory_format=torch.channels_last)
    cases = {
        "channels first": (8, maps),
        "six channels": (6, last[:, :6].contiguous(memory_format=torch.channels_last)),
        "half": (8, last.half()),
        "no affine part": (8, last),
    }
    for name, (channels, input) in cases.items():
        layer = nn.BatchNorm2d(channels, affine=name != "no affine part").to(device).eval()
        expected = layer(input)
        held = Norms(layer, Mode("source"))
        equal = bool(torch.equal(layer(input), expected))
        there = isinstance(layer.__dict__.get("forward"), KernelForward)
        found["left"][name] = {"taken": held.on_kernels, "asked": there, "equal": equal}
        held.release()
    return found


def problems(found: dict[str, Any], there: bool) -> list[str]:
    """Everything that is not as it must be; `there`: kernels were."""
    wrong = []
    for name, each in found["by_kernels"].items():
        limits = {"output": NEAR[each["dtype"]], "input": NEAR[each["dtype"]]}
        for what, apart in each["kernels"].items():
            if not apart <= limits.get(what, NEAR["sums"]):
                wrong.append(f"norm {name}, {what}: {apart} from PyTorch's in double")
        if each["taken"] != there:
            wrong.append(f"norm {name}: {each['taken']} by our kernels")
        if each.get("captured", 0.0) != 0:
            wrong.append(f"norm {name}: captured {each['captured']} apart")
        if not each["released"]:
            wrong.append(f"norm {name}: still not its own after release")
    for name, each in found["left"].items():
        if each != {"taken": 0, "asked": there, "equal": True}:
            wrong.append(f"a norm with {name}: {each}")
    return wrong
