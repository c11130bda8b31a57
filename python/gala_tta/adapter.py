"""Adapts a classifier to the batches it answers."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn

from gala_tta import _core
from gala_tta._arena import Arena, Filter, adapted_slots, find_head, partition, slots_of, unwrapped
from gala_tta._device import heart_for, make_stepper
from gala_tta._loop import Loop
from gala_tta._method import LossFunction, Method, OwnSelector, SourceImages, checked
from gala_tta._norms import Mode, Norms
from gala_tta._parts import Part, fail, make_part
from gala_tta._pass import Network, Passes
from gala_tta._probes import PROBES
from gala_tta._records import Last, Totals
from gala_tta._runner import Runner
from gala_tta._state import load_adapter, save_adapter
from gala_tta._teachers import Site, SourceTeacher
from gala_tta._watch import Watch

Callback = Callable[["Adapter"], None]

# Modules that an adapter has now. Neither side keeps the other alive by it.
_LENT: weakref.WeakKeyDictionary[nn.Module, weakref.ref[Adapter]] = weakref.WeakKeyDictionary()


class Adapter(Loop):
    """Adapts any `nn.Module` that gives logits to the batches it answers, in place.

    Parameters
    ----------
    module
        A classifier, on the CPU or on a GPU; a compiled one too. Parameters that do not require a
        gradient stay frozen.
    method
        A recipe ("tent", "roid", "gala", ...); every option can be given beside it.
    loss
        A spec such as "shot:theta=0.3", or a function of the logits, or of logits and features.
    select
        A spec such as "gala:window=20", or an object with `select(rows)` that returns weights.
    optim, norm, granularity, seed, shadow, guard
        As the options optimizer, norm, partition, seed, shadow and guard of the library.
    callbacks
        Functions that are called with the adapter after every batch.
    classifier
        The last linear layer, or its name, where it is not the last one that was registered.
    mean, std
        How pixels of 0 to 1 were preprocessed, for methods that look at images by a view.
    source_data
        Batches of images of the source, for penalties that learn from them.
    run
        Tells this run from others where a selector draws by run.
    capture
        On a GPU, replay passes over shapes that repeat as captured graphs.
    **options
        Any other option of a method: `gala_tta.describe_options()` lists them.

    While it lives, its parameters lie in the module and no other adapter can have it; `close`, or
    the end of a `with`, makes the module the source model again.
    """

    def __init__(
        self,
        module: nn.Module,
        method: str | None = None,
        *,
        loss: str | LossFunction | None = None,
        select: str | OwnSelector | None = None,
        optim: str | None = None,
        norm: str | None = None,
        granularity: str | None = None,
        seed: int | None = None,
        shadow: bool | None = None,
        guard: str | None = None,
        callbacks: Sequence[Callback] = (),
        classifier: str | nn.Module | None = None,
        mean: Sequence[float] = (0.0, 0.0, 0.0),
        std: Sequence[float] = (1.0, 1.0, 1.0),
        source_data: SourceImages | None = None,
        run: str = "",
        capture: bool = True,
        **options: Any,
    ) -> None:
        if not isinstance(module, nn.Module):
            fail(f"the module must be a torch.nn.Module, not {type(module).__name__}")
        if callable(callbacks) or not isinstance(callbacks, Iterable):
            fail(f"callbacks must be a list of functions, not {type(callbacks).__name__}")
        for each in callbacks:
            if not callable(each):
                fail(f"a callback must be a function of the adapter, not {type(each).__name__}")
        inner = unwrapped(module)
        if inner in _LENT and _LENT[inner]() is not None:
            fail("the module has an adapter already: close it first")
        given = dict(options)
        named = {
            "optimizer": optim,
            "norm": norm,
            "partition": granularity,
            "seed": seed,
            "shadow": shadow,
            "guard": guard,
        }
        for name, value in named.items():
            if value is not None:
                if name in options:
                    short = {"optimizer": "optim", "partition": "granularity"}[name]
                    fail(f"{short} and {name} are the same option: give one of them")
                given[name] = value
        parameter = next(inner.parameters(), None)
        device = torch.device("cpu") if parameter is None else parameter.device
        parts = Method.make(method, given, loss, select, heart_for(device))
        self._options = parts.options
        mode = Mode.parse(parts.options["norm"])
        head = find_head(inner, classifier)
        parts.check(mode.name, source_data is not None)
        slots = slots_of(inner, head[1] if head else None)
        chosen = parts.options["partition"]
        self._granularity = chosen if chosen != "auto" else parts.selector.granularity
        adapted = adapted_slots(slots, self._filter(parts), self._granularity, type(inner).__name__)
        self._layers = partition(adapted, self._granularity)
        if parts.view is not None:
            parts.view.attach(device, mean, std)

        self.module = module
        self.callbacks = list(callbacks)
        self.notes: list[str] = []
        self.last: Last | None = None
        self.totals = Totals()
        self._method = parts
        self._inner = inner
        self._training = {each: each.training for each in inner.modules()}
        self._closed = False
        self._noted = False
        self._stopped = False
        self._classes = 0
        self._outputs = 0  # of the classifier, where there is one
        self._norms: Norms | None = None
        self._spread: _core.LabelSpread | None = None
        self._arena: Arena | None = None
        self._network: Network | None = None
        try:
            module.eval()
            runs = module
            if parts.needs_features and inner is not module:
                # A hook that came after a module was compiled is not looked for.
                runs = inner
                self.notes.append("the method asks for features: the module runs uncompiled")
            self._network = Network(runs, head[1] if head else None, parts.needs_features)
            weight = getattr(head[1], "weight", None) if head else None
            self._outputs = weight.shape[0] if isinstance(weight, Tensor) else 0
            # Replicas of nn.DataParallel would share what stands in a norm's place.
            alone = not any(isinstance(each, nn.DataParallel) for each in module.modules())
            self._norms = self._network.norms = Norms(inner, mode, self._outputs, kernels=alone)
            self._arena = Arena(adapted, slots)
            self._build(parts, head[1] if head else None, run, checked(source_data), capture)
        except BaseException:
            self._give_back()
            raise
        _LENT[inner] = weakref.ref(self)
        self.reset()

    def _filter(self, parts: Method) -> Filter:
        o = parts.options
        adapts = parts.loss.adapts_head if o["head"] == "auto" else o["head"] == "adapt"
        # In a partition of blocks the head is in none.
        head = self._granularity != "block" and adapts
        return Filter(**parts.selector.filter(head), include=o["include"], exclude=o["exclude"])

    def _build(
        self,
        parts: Method,
        head: nn.Module | None,
        run: str,
        source_data: SourceImages | None,
        capture: bool,
    ) -> None:
        arena, norms, network = self._arena, self._norms, self._network
        assert arena is not None
        assert norms is not None
        assert network is not None
        o = self._options
        name = run or (
            f"{type(self._inner).__name__} {o['loss']} {o['optimizer']} {o['norm']} "
            f"{o['inner_steps']} {o['adapt_every']}"
        )
        self._stepper = make_stepper(
            arena, self._layers, o["optimizer"], parts.selector, name, self.notes
        )
        probe = make_part("probe", self._stepper.probe or "none", PROBES)
        if probe is not None:
            probe.attach(arena, self._layers)
        if parts.drift is not None and self._stepper.idle:
            parts.drift = None
        if parts.drift is not None:
            with norms.as_source():
                parts.drift.learn(network, source_data, arena.device)
        drift = None if parts.drift is None else parts.drift.value
        site = Site(network, arena, norms, parts.view, drift)
        if parts.teacher is not None:
            parts.teacher.attach(site)
        anchor = SourceTeacher() if parts.loss.needs.source else None
        if anchor is not None:
            anchor.attach(site)
        if parts.readout is not None:
            parts.readout.attach(head)
        self._parts: dict[str, Part] = parts.parts()
        if probe is not None:
            self._parts["probe"] = probe
        if anchor is not None:
            self._parts["anchor"] = anchor
        self._watch = Watch(o["guard"], network, arena, norms)
        if parts.penalty is not None and not self._stepper.idle:
            with norms.still():
                parts.penalty.learn(arena, lambda images: network(images).logits, source_data)
            parts.penalty.factor = drift
        self._passes = Passes(network, arena, norms, parts, self._stepper, probe, anchor)
        self._runner = Runner(self._passes, self._stepper, capture)

    def __call__(self, images: Tensor) -> Tensor:
        """Answer images [N, ...] with logits [N, C], and adapt to them."""
        self._check_images(images)
        before = self.totals.copy()
        try:
            # Who only answers may be in inference mode; what adapts cannot be.
            with torch.inference_mode(False), self._runner.scope(images):
                images = images.clone() if images.is_inference() else images.detach()
                last, health, seen = self._answer(images)
                self._watch_over(last, health, seen)
                self._runner.hand_over(last.logits, last.adapted)
        except BaseException:
            self.totals = before
            raise
        self.last = last
        if not self._noted and self._norms is not None:
            self.notes += self._norms.notes()
            self._noted = True
        for callback in self.callbacks:
            callback(self)
        return last.logits

    # What stands around it.

    def reset(self) -> None:
        """Go back to the source: parameters, statistics, moments, displacement, clock, counts."""
        self._check_open()
        self._watch.travelled = [0.0] * len(self._layers)
        with self._runner.scope():
            self._watch.restore(self._watch.source())
            self._stepper.reset()
            for part in self._parts.values():
                part.reset()
            if self._spread is not None and self._norms is not None:
                self._spread.reset()
                self._norms.spread.fill_(1)
        self._watch.guard.forget(all=True)
        self._watch.healthy = None
        count = len(self._layers)
        self.totals = Totals(chosen=[0] * count, weight=[0.0] * count, path=[0.0] * count)
        self._stopped = False
        self.last = None

    def close(self) -> None:
        """Make the module the source model again, as it was; a second call does nothing."""
        if not self._closed:
            self._give_back()

    def _give_back(self) -> None:
        self._closed = True
        for part in (self._network, self._norms, self._arena):
            if part is not None:
                part.release()
        for each, training in self._training.items():
            each.training = training
        _LENT.pop(self._inner, None)

    def __del__(self) -> None:
        """Give the module back where nobody closed the adapter."""
        if not getattr(self, "_closed", True):
            self._give_back()

    def __enter__(self) -> Adapter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def state_dict(self) -> dict[str, Any]:
        """Return everything that later steps depend on."""
        self._check_open()
        with self._runner.scope():
            return save_adapter(self)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state; one that does not fit is an error and changes nothing."""
        self._check_open()
        if not isinstance(state, Mapping):
            fail(f"a state is what state_dict() returned, not {type(state).__name__}")
        with self._runner.scope():
            load_adapter(self, state)

    @property
    def layers(self) -> list[str]:
        """Names of the layers, in the module's order."""
        return [name for name, _ in self._layers]

    @property
    def options(self) -> dict[str, Any]:
        """Every option of the method under its name."""
        return dict(self._options, partition=self._granularity)

    @property
    def stopped(self) -> bool:
        """True after the guard stopped adaptation."""
        return self._stopped

    @property
    def capture_problem(self) -> str:
        """Why passes are not captured although the device could, or nothing."""
        return self._runner.problem

    def __repr__(self) -> str:
        o = self._options
        return (
            f"Adapter({type(self._inner).__name__}, loss={o['loss']}, select={o['select']}, "
            f"optim={o['optimizer']}, {len(self._layers)} layers, {self.totals.steps} steps)"
        )

    def _check_open(self) -> None:
        if self._closed:
            fail("the adapter is closed")

    def _check_images(self, images: Tensor) -> None:
        self._check_open()
        assert self._arena is not None
        if not isinstance(images, Tensor) or images.dim() < 2:
            fail("images must be a tensor [N, ...]")
        if images.shape[0] == 0:
            fail("there must be at least one image")
        if images.device != self._arena.device:
            fail(f"the images are on {images.device}, the module is on {self._arena.device}")
