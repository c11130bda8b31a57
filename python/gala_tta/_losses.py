"""Objectives without labels: those of gala/loss, and functions of the user's."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace

import torch
from torch import Tensor

from gala_tta._loss_terms import (
    ALL,
    COUNTED,
    NO_LOOK,
    Loss,
    LossInput,
    Needs,
    compare,
    confident_cross_entropy,
    count_of,
    entropies,
    negative_diversity,
    weighted_mean,
)
from gala_tta._parts import fail, make_parts, require


class PseudoLabel(Loss):
    def __init__(self, o: SimpleNamespace) -> None:
        self._beta = o.beta

    def evaluate(self, given: LossInput) -> tuple[Tensor, Tensor]:
        return confident_cross_entropy(given.student.logits, self._beta, given.weights)


class Shot(Loss):
    adapts_head = False

    def __init__(self, o: SimpleNamespace) -> None:
        self._beta, self._theta = o.beta, o.theta

    def evaluate(self, given: LossInput) -> tuple[Tensor, Tensor]:
        logits, weights = given.student.logits, given.weights
        labels, confident = confident_cross_entropy(logits, self._beta, weights)
        value = weighted_mean(entropies(logits), weights) + negative_diversity(
            logits, 1e-5, weights
        )
        return value + self._theta * labels, confident


class InformationMaximisation(Loss):
    adapts_head = False

    def __init__(self, o: SimpleNamespace) -> None:
        self._epsilon = o.epsilon

    def evaluate(self, given: LossInput) -> tuple[Tensor, Tensor]:
        logits, weights = given.student.logits, given.weights
        value = weighted_mean(entropies(logits), weights)
        return value + negative_diversity(logits, self._epsilon, weights), count_of(logits, weights)


class Entropy(Loss):
    def __init__(self, o: SimpleNamespace) -> None:
        self._below = o.below

    def evaluate(self, given: LossInput) -> tuple[Tensor, Tensor]:
        logits, weights = given.student.logits, given.weights
        entropy = entropies(logits)
        if self._below == 0:
            return weighted_mean(entropy, weights), count_of(logits, weights)
        kept = entropy.detach().lt(self._below).to(logits.dtype)
        count = kept.sum()
        counted = kept if weights is None else kept * weights
        return (entropy * counted).sum() / count.clamp_min(1), count


class GeneralisedCrossEntropy(Loss):
    def __init__(self, o: SimpleNamespace) -> None:
        self._q = o.q

    def evaluate(self, given: LossInput) -> tuple[Tensor, Tensor]:
        logits = given.student.logits
        label = logits.detach().argmax(1, keepdim=True)
        p = torch.softmax(logits, 1).gather(1, label).squeeze(1)
        return weighted_mean((1 - p.pow(self._q)) / self._q, given.weights), count_of(
            logits, given.weights
        )


class SoftLikelihoodRatio(Loss):
    def __init__(self, o: SimpleNamespace) -> None:
        self._clip = o.clip

    def evaluate(self, given: LossInput) -> tuple[Tensor, Tensor]:
        logits = given.student.logits
        p = torch.softmax(logits, 1).clamp(0, self._clip)
        losses = -(p * (p / (1 - p) + 1e-5).log()).sum(1)
        return weighted_mean(losses, given.weights), count_of(logits, given.weights)


class Consistency(Loss):
    def __init__(self, o: SimpleNamespace) -> None:
        self._o = o
        self.needs = Needs(view=ALL if o.all else COUNTED)

    def evaluate(self, given: LossInput) -> tuple[Tensor, Tensor]:
        assert given.view is not None
        logits, weights = given.student.logits, given.weights
        seen = logits
        seen_weights = weights
        if given.rows is not None:
            seen = logits.index_select(0, given.rows)
            seen_weights = None if weights is None else weights.index_select(0, given.rows)
        losses = compare(seen, given.view.logits, self._o.form)
        total = (losses if seen_weights is None else losses * seen_weights).sum()
        per_class = self._o.per_class
        weight = per_class * logits.shape[1] if per_class > 0 else self._o.weight
        # Over the whole batch, as the term beside it.
        return total * (weight / logits.shape[0]), count_of(logits, weights)


def _needs_of(look: str) -> Needs:
    return Needs(images=look != "view", view=NO_LOOK if look == "images" else ALL)


def _compare_looks(answers: Tensor, given: LossInput, look: str, form: str) -> Tensor:
    if look == "images":
        return compare(answers, given.student.logits, form)
    assert given.view is not None
    seen = compare(answers, given.view.logits, form)
    if look == "view":
        return seen
    return 0.5 * compare(answers, given.student.logits, form) + 0.5 * seen


class TeacherCrossEntropy(Loss):
    def __init__(self, o: SimpleNamespace) -> None:
        self._o = o
        self.needs = _needs_of(o.look)
        self.needs.teacher = True

    def evaluate(self, given: LossInput) -> tuple[Tensor, Tensor]:
        assert given.teacher is not None
        losses = _compare_looks(given.teacher.logits, given, self._o.look, self._o.form)
        return weighted_mean(losses, given.weights), count_of(given.student.logits, given.weights)


class SourceCrossEntropy(Loss):
    def __init__(self, o: SimpleNamespace) -> None:
        self._o = o
        self.needs = _needs_of(o.look)
        self.needs.source = True

    def evaluate(self, given: LossInput) -> tuple[Tensor, Tensor]:
        assert given.source is not None
        losses = _compare_looks(given.source.logits, given, self._o.look, "cross_entropy")
        value = weighted_mean(losses, given.weights) * self._o.weight
        return value, count_of(given.student.logits, given.weights)


class MarginalEntropy(Loss):
    def __init__(self, o: SimpleNamespace) -> None:
        self._looks = o.looks
        self.needs = Needs(images=False, view=ALL, looks=o.looks)

    def evaluate(self, given: LossInput) -> tuple[Tensor, Tensor]:
        assert given.view is not None
        logits = given.view.logits  # look by look, image by image
        log_p = torch.log_softmax(logits, 1).view(self._looks, logits.shape[0] // self._looks, -1)
        log_mean = torch.logsumexp(log_p, 0) - math.log(self._looks)
        entropy = -(log_mean.exp() * log_mean).sum(1)
        return weighted_mean(entropy, given.weights), count_of(log_mean, given.weights)


class Sum(Loss):
    """The sum of several; the first says what counts and whether the head adapts."""

    def __init__(self, terms: Sequence[Loss]) -> None:
        self._terms = terms
        self.adapts_head = terms[0].adapts_head
        self.needs = Needs(
            teacher=any(t.needs.teacher for t in terms),
            source=any(t.needs.source for t in terms),
            images=any(t.needs.images for t in terms),
            view=max(t.needs.view for t in terms),
        )

    def evaluate(self, given: LossInput) -> tuple[Tensor, Tensor]:
        value, confident = self._terms[0].evaluate(given)
        for term in self._terms[1:]:
            value = value + term.evaluate(given)[0]
        return value, confident


class OwnLoss(Loss):
    """A function of the user's: of the logits, or of logits and features."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        self._function = function
        try:
            kinds = [p.kind for p in inspect.signature(function).parameters.values()]
        except (TypeError, ValueError):
            kinds = [inspect.Parameter.POSITIONAL_ONLY]
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        self.needs = Needs(features=sum(kind in positional for kind in kinds) > 1)
        self.adapts_head = bool(getattr(function, "adapts_head", True))

    def evaluate(self, given: LossInput) -> tuple[Tensor, Tensor]:
        student = given.student
        if self.needs.features:
            value = self._function(student.logits, student.features)
        else:
            value = self._function(student.logits)
        if not isinstance(value, Tensor):
            fail(f"the loss must return a scalar tensor, not {type(value).__name__}")
        if value.numel() != 1:
            fail(f"the loss must return a scalar, not a tensor of shape {list(value.shape)}")
        if not value.requires_grad:
            fail("the loss returned a value that does not depend on the logits")
        return value.reshape(()).float(), count_of(student.logits, given.weights)


LOSSES: dict[str, Callable[[SimpleNamespace], Loss]] = {
    "pseudo_label": PseudoLabel,
    "shot": Shot,
    "information_maximisation": InformationMaximisation,
    "entropy": Entropy,
    "generalised_cross_entropy": GeneralisedCrossEntropy,
    "soft_likelihood_ratio": SoftLikelihoodRatio,
    "consistency": Consistency,
    "teacher_cross_entropy": TeacherCrossEntropy,
    "source_cross_entropy": SourceCrossEntropy,
    "marginal_entropy": MarginalEntropy,
}


def make_loss(text: str) -> Loss:
    """Make a loss from its spec, or the sum of several."""
    terms = make_parts("loss", text, LOSSES)
    require(bool(terms), "a method needs a loss; with --select none nothing moves")
    if len(terms) == 1:
        return terms[0]
    for term in terms:
        require(
            term.needs.looks == 1,
            f'a loss that looks at every image several times stands alone, not in "{text}"',
        )
    return Sum(terms)
