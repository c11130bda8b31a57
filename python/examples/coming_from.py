"""Coming from Tent, T3A or the test-time-adaptation repository: their way beside ours.

The first halves are written as their users write them, in plain PyTorch; the answers are equal.
"""

from __future__ import annotations

import copy

import gala_tta as gala
import torch
from torch import Tensor, nn


def make_model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(128, 5),
    )


def tent_their_way(model: nn.Module, stream: list[Tensor]) -> list[Tensor]:
    """configure_model, collect_params, an optimizer, forward_and_adapt."""
    model.train()
    model.requires_grad_(False)
    parameters = []
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.requires_grad_(True)
            module.track_running_stats = False
            module.running_mean = module.running_var = None
            parameters += [module.weight, module.bias]
    optimizer = torch.optim.Adam(parameters, lr=1e-3)
    answers = []
    for images in stream:
        logits = model(images)
        loss = -(logits.softmax(1) * logits.log_softmax(1)).sum(1).mean(0)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        answers.append(logits.detach())
    return answers


def tent_our_way(model: nn.Module, stream: list[Tensor]) -> list[Tensor]:
    with gala.Adapter(model, "tent") as adapter:
        return [adapter(images) for images in stream]


def t3a_their_way(model: nn.Sequential, stream: list[Tensor], keep: int) -> list[Tensor]:
    """A featurizer, supports that begin with the classifier's weights, the surest are kept."""
    model.eval()
    featurizer, head = model[:-1], model[-1]
    with torch.no_grad():
        supports = head.weight.clone()
        warmup = head(supports)
        labels = warmup.argmax(1)
        entropy = -(warmup.softmax(1) * warmup.log_softmax(1)).sum(1)
        answers = []
        for images in stream:
            features = featurizer(images)
            logits = head(features)
            supports = torch.cat([supports, features])
            labels = torch.cat([labels, logits.argmax(1)])
            own = -(logits.softmax(1) * logits.log_softmax(1)).sum(1)
            entropy = torch.cat([entropy, own])
            kept = []
            for c in range(logits.shape[1]):
                mine = (labels == c).nonzero().squeeze(1)
                kept.append(mine[entropy[mine].argsort(stable=True)[:keep]])
            rows = torch.cat(kept)
            supports, labels, entropy = supports[rows], labels[rows], entropy[rows]
            unit = nn.functional.normalize(supports, dim=1)
            weights = torch.zeros_like(head.weight).index_add_(0, labels, unit)
            answers.append(features @ nn.functional.normalize(weights, dim=1).t())
    return answers


def t3a_our_way(model: nn.Module, stream: list[Tensor], keep: int) -> list[Tensor]:
    with gala.Adapter(model, "t3a", readout=f"t3a:keep={keep}") as adapter:
        return [adapter(images) for images in stream]


def main() -> None:
    stream = list(torch.rand(4, 16, 3, 12, 12))
    model = make_model()

    theirs = tent_their_way(copy.deepcopy(model), stream)
    ours = tent_our_way(model, stream)
    print("tent:", compare(theirs, ours))

    theirs = t3a_their_way(copy.deepcopy(model), stream, keep=3)
    ours = t3a_our_way(model, stream, keep=3)
    print("t3a:", compare(theirs, ours))

    # The repository test-time-adaptation names a method and its settings in a file; here:
    for method in ("eta", "rpl", "sar", "roid", "cmf", "cotta"):
        with gala.Adapter(model, method, seed=1) as adapter:
            for images in stream:
                adapter(images)
            print(f"{method}: {adapter.totals.steps} steps, loss {adapter.last.loss:.3f}")


def compare(theirs: list[Tensor], ours: list[Tensor]) -> str:
    apart = max(float((a - b).abs().max()) for a, b in zip(theirs, ours, strict=True))
    assert apart < 1e-4, apart
    return f"{len(ours)} batches, logits at most {apart:.1e} apart"


if __name__ == "__main__":
    main()
