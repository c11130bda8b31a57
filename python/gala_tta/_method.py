"""A method's options, the parts they name, and what of them does not fit together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from gala_tta import _core
from gala_tta._around import (
    AFTER_STEPS,
    PERTURBATIONS,
    RESET_RULES,
    AfterStep,
    ResetRule,
    Sharpness,
)
from gala_tta._drift import DRIFTS, FeatureDrift
from gala_tta._loss_terms import NO_LOOK, Loss
from gala_tta._losses import OwnLoss, make_loss
from gala_tta._parts import Error, Part, fail, make_part, make_parts
from gala_tta._penalties import PENALTIES, Penalty
from gala_tta._readouts import READOUTS, Readout
from gala_tta._samples import SAMPLE_RULES, SampleRule
from gala_tta._selecting import Rows, own_selector
from gala_tta._stores import STORES, Store
from gala_tta._teachers import TEACHERS, SourceTeacher
from gala_tta._views import VIEWS, View

__all__ = ["Error", "LossFunction", "Method", "OwnSelector", "SourceImages", "checked"]

LossFunction = Callable[..., Tensor]
SourceImages = Iterable[Tensor]


# What the library reads an option from.
_LARGEST = 2**63 - 1


def readable(name: str, value: Any) -> Any:
    """Return the value of an option; what nobody could mean by it is an error that names it."""
    if callable(value) or isinstance(value, Tensor):
        what = value.__name__ if isinstance(value, type) else type(value).__name__
        fail(f"{name} takes a text such as a spec, or a number, not {what}")
    if isinstance(value, int) and abs(value) > _LARGEST:
        fail(f"{name} cannot be {value} (expected at most {_LARGEST})")
    if isinstance(value, list | tuple):
        for each in value:
            if not isinstance(each, str):
                fail(f"{name} takes texts, not {type(each).__name__}")
    return value


def checked(images: SourceImages | None) -> SourceImages | None:
    """Return the source's images, each batch looked at before anybody learns from it."""
    if images is None:
        return None
    if isinstance(images, Tensor | str) or not isinstance(images, Iterable):
        fail(f"source_data takes batches of images, not {type(images).__name__}")

    def batches() -> Iterator[Tensor]:
        for batch in images:
            if not isinstance(batch, Tensor) or batch.dim() < 2:
                fail(
                    f"source_data must give tensors [N, ...] of images, not "
                    f"{type(batch).__name__}: labels are left out"
                )
            yield batch

    return batches()


class OwnSelector(Protocol):
    """A selector of your own. `window` and `granularity` may be attributes of it as well."""

    def select(self, rows: Rows) -> Any:
        """Return one weight for each row: 1 moves a layer by its whole update, 0 not at all."""


@dataclass
class Method:
    """The options of a run with every part made, but for optimizer and stepper."""

    options: dict[str, Any]
    loss: Loss
    selector: _core.Selector
    samples: SampleRule | None
    store: Store | None
    view: View | None
    teacher: SourceTeacher | None
    perturb: Sharpness | None
    penalty: Penalty | None
    drift: FeatureDrift | None
    after_step: list[AfterStep]
    reset: ResetRule | None
    readout: Readout | None

    @staticmethod
    def make(
        method: str | None,
        given: dict[str, Any],
        loss: str | LossFunction | None,
        select: str | OwnSelector | None,
        heart: Any = _core,
    ) -> Method:
        """Decide every option and make what it names."""
        if method is not None and not isinstance(method, str):
            fail(f"the method must be a name (see list_methods()), not {type(method).__name__}")
        texts = {name: readable(name, value) for name, value in given.items() if value is not None}
        if isinstance(loss, str):
            texts["loss"] = loss
        if isinstance(select, str):
            texts["select"] = select
        o = _core.method_options(method or "", texts)
        own_loss = loss is not None and not isinstance(loss, str)
        own_select = select is not None and not isinstance(select, str)
        if own_loss and not callable(loss):
            fail(f"the loss must be a spec or a function of logits, not {type(loss).__name__}")
        return Method(
            options=o,
            loss=OwnLoss(loss) if callable(loss) else make_loss(o["loss"]),
            selector=own_selector(select, heart)
            if own_select
            else heart.Selector(o["select"], o["seed"]),
            samples=make_part("samples", o["samples"], SAMPLE_RULES),
            store=make_part("store", o["store"], STORES),
            view=make_part("view", o["view"], VIEWS),
            teacher=make_part("teacher", o["teacher"], TEACHERS),
            perturb=make_part("perturb", o["perturb"], PERTURBATIONS),
            penalty=make_part("penalty", o["penalty"], PENALTIES),
            drift=make_part("drift", o["drift"], DRIFTS),
            after_step=make_parts("after_step", o["after_step"], AFTER_STEPS),
            reset=make_part("reset", o["reset"], RESET_RULES),
            readout=make_part("readout", o["readout"], READOUTS),
        )

    @property
    def needs_features(self) -> bool:
        """Whether anybody asks what the last linear layer saw."""
        readout = self.readout is not None and self.readout.needs_features
        return self.loss.needs.features or readout or self.drift is not None

    def parts(self) -> dict[str, Part]:
        """Return the parts that may remember something, by name."""
        named: dict[str, Part | None] = {
            "samples": self.samples,
            "store": self.store,
            "teacher": self.teacher,
            "penalty": self.penalty,
            "drift": self.drift,
            "reset": self.reset,
            "readout": self.readout,
        }
        named.update({f"after_step{i}": part for i, part in enumerate(self.after_step)})
        return {name: part for name, part in named.items() if part is not None}

    def check(self, norm: str, source_images: bool) -> None:
        """Say what does not fit together."""
        self._check_store()
        if self.selector.idle:
            return
        self._check_teacher(norm)
        self._check_view()
        self._check_answer()
        self._check_source(source_images)

    def _check_source(self, source_images: bool) -> None:
        penalty = self.penalty is not None and self.penalty.wants_source_images
        if penalty and self.drift:
            fail(
                "penalty and drift would both learn from images of the source, which are read "
                "once (penalty cosine or distance, or drift none)"
            )
        if (penalty or self.drift) and not source_images:
            who = "penalty" if penalty else "drift"
            fail(
                f"the {who} learns from images of the source: name some (source_data "
                f"takes batches of images), or leave it out ({who} none)"
            )
        if source_images and not (penalty or self.drift):
            fail(
                "nobody learns from images of the source (source_data): the penalty fisher and "
                "the drift features would"
            )
        if self.drift and not self.penalty and not self.teacher:
            fail("nobody asks the drift: a penalty or a teacher would")

    def _check_store(self) -> None:
        o, store = self.options, self.store
        if self.samples and self.samples.wants_ages and not (store and store.answers_first):
            fail(
                "the sample rule asks how old images are, and nobody keeps them "
                "(such as store balanced)"
            )
        if store is None:
            return
        if o["episodic"]:
            fail("episodic goes back before every batch, and a store would be empty each time")
        if o["adapt_every"] > 1:
            fail(
                "with a store it is the store that says when to adapt "
                f"(adapt_every 1, not {o['adapt_every']})"
            )
        if store.answers_first and o["predict"] == "after":
            fail(
                "predict after has nothing to answer: with this store a batch is answered before "
                "the step"
            )

    def _check_teacher(self, norm: str) -> None:
        o, needs = self.options, self.loss.needs
        asked = needs.teacher or o["answer"] != "student"
        if self.teacher is None:
            if asked:
                who = "the loss" if needs.teacher else f"answer {o['answer']}"
                fail(f"{who} needs a teacher, and the method has none (such as teacher mean)")
            return
        if not asked:
            fail(
                "nobody asks the teacher: the loss teacher_cross_entropy would, "
                "and answer teacher or sum"
            )
        if o["answer"] != "student" and o["predict"] == "after":
            fail(f"predict after is the student's answer, and answer {o['answer']} the teacher's")
        if norm == "source" and type(self.teacher) is SourceTeacher:
            fail(
                "the teacher source under norm source is the student as it begins: there is "
                "nothing to learn from it (norm batch, or teacher mean)"
            )

    def _check_view(self) -> None:
        loss = self.loss.needs.view != NO_LOOK
        samples = bool(self.samples and self.samples.looks_again)
        teacher = bool(self.teacher and self.teacher.looks)
        asked = loss or samples or teacher
        if self.view is None and asked:
            who = "loss" if loss else "sample rule" if samples else "teacher"
            fail(
                f"the {who} looks at images a second time, and the method has no view "
                f"(such as view {'patches' if samples else 'augment'})"
            )
        if self.view is not None and not asked:
            fail(
                "nobody looks by the view: a loss such as consistency, the sample rule deyo and "
                "the teacher mean with views above 0 would"
            )

    def _check_answer(self) -> None:
        o, needs = self.options, self.loss.needs
        if needs.looks > 1 and self.samples:
            fail(
                f"the loss looks at every image {needs.looks} times, and a sample rule weighs "
                "images seen once (samples none)"
            )
        first = bool(self.store and self.store.answers_first)
        if needs.images or first or o["answer"] == "teacher" or o["predict"] == "after":
            return
        fail(
            "the loss shows the student images by the view alone, which is no answer to the "
            "images themselves (answer teacher, predict after, or store balanced)"
        )
