"""What losses are made of: what they get, what they ask for, and terms that several share."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gala_tta._parts import Output

# Which images a loss wants to see a second time.
NO_LOOK, COUNTED, ALL = 0, 1, 2


@dataclass
class LossInput:
    """What a loss is made from; None where nobody asked for it."""

    student: Output
    teacher: Output | None = None
    source: Output | None = None
    view: Output | None = None
    weights: Tensor | None = None
    rows: Tensor | None = None


@dataclass
class Needs:
    """What a loss asks for beside the student's answer."""

    teacher: bool = False
    source: bool = False
    images: bool = True
    view: int = NO_LOOK
    looks: int = 1
    features: bool = False


class Loss:
    """An objective on a batch's output, without state."""

    adapts_head = True
    needs = Needs()

    def evaluate(self, given: LossInput) -> tuple[Tensor, Tensor]:
        """Return the value to be minimised, and how many samples took part."""
        raise NotImplementedError


def weighted_mean(losses: Tensor, weights: Tensor | None) -> Tensor:
    """Return the mean of weight times loss over the batch."""
    return (losses if weights is None else losses * weights).mean()


def count_of(logits: Tensor, weights: Tensor | None) -> Tensor:
    """Return how many samples take part: all, or those with a weight."""
    if weights is not None:
        return weights.ne(0).sum().to(logits.dtype)
    return torch.full((), logits.shape[0], dtype=logits.dtype, device=logits.device)


def entropies(logits: Tensor) -> Tensor:
    """Return the entropy of each answer, in nats."""
    log_p = torch.log_softmax(logits, 1)
    return -(log_p.exp() * log_p).sum(1)


def negative_diversity(logits: Tensor, epsilon: float, weights: Tensor | None) -> Tensor:
    """Return minus the entropy of the mean answer."""
    p = torch.softmax(logits, 1)
    if weights is None:
        mean = p.mean(0)
    else:
        mean = (p * weights.unsqueeze(1)).sum(0) / weights.sum().clamp_min(1e-12)
    return (mean * (mean + epsilon).log()).sum()


def confident_cross_entropy(
    logits: Tensor, beta: float, weights: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return the cross-entropy to its own labels over confident samples, and their number."""
    log_p = torch.log_softmax(logits, 1)
    best, label = log_p.max(1, keepdim=True)
    kept = (best.detach().exp() > beta).to(logits.dtype)
    count = kept.sum()
    counted = kept if weights is None else kept * weights.unsqueeze(1)
    return -(log_p.gather(1, label) * counted).sum() / count.clamp_min(1), count.detach()


def compare(p_logits: Tensor, q_logits: Tensor, form: str) -> Tensor:
    """Return -Σ p log q of each sample, or half of it and the same turned round."""
    log_p, log_q = torch.log_softmax(p_logits, 1), torch.log_softmax(q_logits, 1)
    forth = -(log_p.exp() * log_q).sum(1)
    if form == "cross_entropy":
        return forth
    return 0.5 * forth - 0.5 * (log_q.exp() * log_p).sum(1)
