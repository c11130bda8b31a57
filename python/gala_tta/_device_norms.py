"""Batch norms on a GPU by the program's own kernels, where they fit: gala/model/cuda_norm.cpp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional

from gala_tta import _core, _device

_PLAIN = (Tensor, nn.Parameter)


def kernels_for(device: torch.device) -> Any:
    """Return the module whose `Norm` normalises maps on a device, or None."""
    heart = _device.heart_for(device)
    return None if heart is _core else heart


def _is_aligned(tensor: Tensor) -> bool:
    """Whether kernels can read its memory four numbers at a time."""
    return tensor.data_ptr() % 16 == 0


def _is_channels_last(maps: Tensor) -> bool:
    return maps.is_contiguous(memory_format=torch.channels_last) and _is_aligned(maps)


def fits(input: Tensor, vectors: tuple[Any, ...], *, any_layout: bool = False) -> bool:
    """Whether the kernels take maps and what has a number for each channel, wherever they lie.

    With `any_layout` they would, if the maps were channels-last.
    """
    if type(input) not in _PLAIN or input.dim() != 4 or input.numel() == 0:
        return False
    channels = input.shape[1]
    if channels % 4 != 0 or input.dtype not in (torch.float32, torch.bfloat16):
        return False
    return (any_layout or _is_channels_last(input)) and all(
        type(each) in _PLAIN
        and each.dtype == torch.float32
        and each.device == input.device
        and each.shape == (channels,)
        and each.is_contiguous()
        and _is_aligned(each)
        for each in vectors
    )


def _is_watched() -> bool:
    """Whether somebody wants PyTorch's operators: a compiler, a tracer, a transform, a tangent."""
    return bool(
        torch.compiler.is_compiling()
        or torch._C._get_tracing_state() is not None
        or torch._C._are_functorch_transforms_active()
        or torch._C._len_torch_dispatch_stack() > 0
        or forward_ad._current_level >= 0
    )


class _Queue:
    """The kernels over tensors; memory is PyTorch's, and work comes on its current stream."""

    def __init__(self, input: Tensor, epsilon: float) -> None:
        channels, bfloat16 = input.shape[1], input.dtype == torch.bfloat16
        self._input = input
        self._norm = kernels_for(input.device).Norm(
            input.device.index or 0,
            _device.stream_of(input),
            input.numel() // channels,
            channels,
            epsilon,
            bfloat16,
        )

    def _floats(self, count: int) -> Tensor:
        return torch.empty(count, dtype=torch.float32, device=self._input.device)

    def statistics(self) -> tuple[Tensor, Tensor]:
        """Return mean and biased variance of the maps."""
        input, parts = self._input, self._floats(self._norm.parts())
        mean, variance = self._floats(input.shape[1]), self._floats(input.shape[1])
        addresses = [each.data_ptr() for each in (input, parts, mean, variance)]
        self._norm.statistics(*addresses)
        return mean, variance

    def forward(self, parameters: tuple[Tensor, ...]) -> Tensor:
        """Normalise; parameters are scale, shift, mean and variance."""
        output = torch.empty_like(self._input)
        addresses = [each.data_ptr() for each in parameters]
        self._norm.forward(addresses, self._input.data_ptr(), output.data_ptr())
        return output

    def backward(
        self, own: bool, parameters: tuple[Tensor, ...], gradient: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients of maps, scale and shift; `own`: statistics are the maps'."""
        gradient = gradient.contiguous(memory_format=torch.channels_last)
        if not _is_aligned(gradient):
            gradient = gradient.clone()
        channels = self._input.shape[1]
        parts, scale_gradient, shift_gradient = (
            self._floats(count) for count in (self._norm.parts(), channels, channels)
        )
        input_gradient = torch.empty_like(self._input)
        maps = (self._input, gradient, input_gradient, parts, scale_gradient, shift_gradient)
        self._norm.backward(
            own, [each.data_ptr() for each in parameters], *[each.data_ptr() for each in maps]
        )
        return input_gradient, scale_gradient, shift_gradient


class _Norm(torch.autograd.Function):
    """Where no mean is given, the statistics are those of the maps."""

    @staticmethod
    def forward(
        ctx: Any,
        input: Tensor,
        scale: Tensor,
        shift: Tensor,
        mean: Tensor | None,
        variance: Tensor | None,
        epsilon: float,
    ) -> Tensor:
        queue = _Queue(input, epsilon)
        ctx.own, ctx.epsilon = mean is None, epsilon
        if mean is None or variance is None:
            mean, variance = queue.statistics()
        ctx.save_for_backward(input, scale, shift, mean, variance)
        return queue.forward((scale, shift, mean, variance))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        input, *parameters = ctx.saved_tensors
        if torch.is_grad_enabled():
            # Somebody differentiates twice: PyTorch's operators can, kernels cannot.
            return (*_by_operators(ctx, gradient), None, None, None)
        gradients = _Queue(input, ctx.epsilon).backward(ctx.own, tuple(parameters), gradient)
        return (*gradients, None, None, None)


def _by_operators(ctx: Any, gradient: Tensor) -> list[Tensor | None]:
    """Return the gradients of maps, scale and shift as part of a graph."""
    input, scale, shift, mean, variance = ctx.saved_tensors
    if ctx.own:
        mean = variance = None
    output = functional.batch_norm(input, mean, variance, scale, shift, ctx.own, 0.0, ctx.epsilon)
    given = [each for each in (input, scale, shift) if each.requires_grad]
    found = iter(torch.autograd.grad(output, given, gradient, create_graph=True))
    return [next(found) if each.requires_grad else None for each in (input, scale, shift)]


class KernelForward:
    """What takes the place of a batch norm's forward on a GPU, by whichever statistics it has now.

    Whatever the kernels do not take goes to the norm's own forward.
    """

    def __init__(self, module: nn.BatchNorm2d) -> None:
        self._module = module
        #: Whether the last call went to the kernels.
        self.taken = False
        #: Whether it was the layout alone that kept the first call that did not; None without one.
        self.missed_by_layout: bool | None = None

    def __call__(self, input: Tensor) -> Tensor:
        module = self._module
        if _is_watched():
            return type(module).forward(module, input)
        self.taken = self._takes(input)
        if not self.taken:
            if self.missed_by_layout is None:
                self.missed_by_layout = self._takes(input, any_layout=True)
            return type(module).forward(module, input)
        given = (module.weight, module.bias, module.running_mean, module.running_var)
        output: Tensor = _Norm.apply(input, *given, module.eps)  # type: ignore[no-untyped-call]
        return output

    def _takes(self, input: Tensor, any_layout: bool = False) -> bool:
        module = self._module
        vectors: tuple[Any, ...] = (module.weight, module.bias)
        if module.running_mean is None and module.running_var is None:
            # Of a single value a channel PyTorch refuses to make statistics, in its own words.
            enough = isinstance(input, Tensor) and input.numel() > module.num_features
        else:
            enough, vectors = True, (*vectors, module.running_mean, module.running_var)
        return enough and not module.training and fits(input, vectors, any_layout=any_layout)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Stay behind: a copy of the module gets the forward of its class."""
        return getattr, (self._module, "forward")


def kernel_forward(module: nn.Module) -> KernelForward | None:
    """Return what may take the place of a norm's forward, where it lies on a GPU with kernels."""
    if not isinstance(module, nn.BatchNorm2d) or module.running_mean is None:
        return None
    alike = type(module).forward is nn.BatchNorm2d.forward
    if not alike or kernels_for(module.running_mean.device) is None:
        return None
    return KernelForward(module)
