"""Who runs passes: one by one, or on a GPU as captured graphs where shapes repeat."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gala_tta._device import AnyStepper
from gala_tta._pass import Frame, Kind, Passes

# Shapes beyond these are never captured: each graph holds memory.
_MOST_GRAPHS = 8


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__


@dataclass
class _Graph:
    graph: Any
    frame: Frame
    addresses: list[int]


class Runner:
    """Runs passes; on a GPU on a stream of its own.

    A shape that comes a second time is captured and replayed from then on, unless something in the
    pass cannot be: `problem` then says what.
    """

    def __init__(self, passes: Passes, stepper: AnyStepper, capture: bool) -> None:
        self._passes, self._stepper = passes, stepper
        self._stream: Any = None
        self._outside: Any = None
        self._graphs: dict[Any, _Graph] = {}
        self._seen: set[Any] = set()
        self._pool: Any = None
        self._capture = False
        self.problem = ""
        device = passes.arena.device
        if device.type == "cuda":
            self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
            stepper.use_stream(self._stream.cuda_stream)
            self.problem = passes.can_be_captured() if capture else "nobody asked for it"
            self._capture = not self.problem

    @contextmanager
    def scope(self, images: Tensor | None = None) -> Iterator[None]:
        """Have everything that touches parameters or moments queued on one stream.

        It comes after the caller's work, and what the caller queues next comes after it.
        """
        if self._stream is None:
            yield
            return
        outside = torch.cuda.current_stream(self._stream.device)
        if outside == self._stream:
            yield
            return
        self._stream.wait_stream(outside)
        if images is not None:
            images.record_stream(self._stream)
        self._outside = outside
        try:
            with torch.cuda.stream(self._stream):
                yield
        finally:
            outside.wait_stream(self._stream)

    def hand_over(self, *tensors: Tensor | None) -> None:
        """Say that tensors of this stream are used on the caller's, within its scope."""
        for each in tensors:
            if each is not None and self._outside is not None:
                each.record_stream(self._outside)

    def run(self, images: Tensor, kind: Kind) -> Frame:
        """Make a pass over a batch."""
        if not self._capture:
            return self._passes.run(images, kind)
        autocast = torch.is_autocast_enabled("cuda")
        key = (
            kind,
            images.shape,
            images.stride(),
            images.dtype,
            autocast and torch.get_autocast_dtype("cuda"),
        )
        if key not in self._graphs:
            if key not in self._seen or len(self._graphs) >= _MOST_GRAPHS:
                self._seen.add(key)
                return self._passes.run(images, kind)
            try:
                self._graphs[key] = self._captured(images, kind)
            except Exception as error:  # whatever the user's module does not allow
                self.problem = self.problem or _first_line(error)
            if self.problem:
                self._give_up()
                return self._passes.run(images, kind)
        return self._replayed(self._graphs[key], images)

    def _captured(self, images: Tensor, kind: Kind) -> _Graph:
        still = torch.empty_like(images).copy_(images)
        graph = torch.cuda.CUDAGraph()
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        with torch.cuda.graph(
            graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"
        ):
            try:
                frame = self._passes.run(still, kind)
            except Exception as error:
                self.problem = _first_line(error)  # the end of the capture says less
                raise
        addresses = [0 if each is None else each.data_ptr() for each in frame.gradients]
        # What autograd needed is in the graph; its nodes are not needed any more.
        for output in (frame.output, frame.taught, frame.anchored):
            if output is not None:
                output.logits = output.logits.detach()
                output.features = None if output.features is None else output.features.detach()
        frame.logits = frame.logits.detach()
        return _Graph(graph, frame, addresses)

    def _give_up(self) -> None:
        """Capture nothing more, and forget what was."""
        self._capture = False
        self._graphs.clear()
        # A capture that was broken off on the GPU leaves PyTorch's allocator waiting for its end:
        # memory that other streams have used would never be free again.
        device = self._passes.arena.device.index
        with suppress(RuntimeError, AttributeError):  # it ended as it should
            torch._C._cuda_endAllocateToPool(device, self._pool)
            torch._C._cuda_releasePool(device, self._pool)

    def _replayed(self, captured: _Graph, images: Tensor) -> Frame:
        held = captured.frame
        held.images.copy_(images)
        captured.graph.replay()
        if held.facts is not None:
            self._stepper.recall(captured.addresses)
        # The next replay writes over the logits, and this answer is the caller's.
        return Frame(
            held.images,
            held.output,
            held.logits.clone(),
            held.taught,
            held.anchored,
            held.facts,
            held.gate,
            held.probed,
            held.gradients,
        )
