"""Writes batches of logits with the value and the gradient of each loss on them, by PyTorch.

usage: make_loss_fixtures.py FOLDER        (a Python with torch)

FOLDER is made anew. cases.json is a list; each case has the loss as `gala` spells it, logits, value,
gradient and the number of confident samples, in double precision. The losses are written here with
boolean indexing and F.cross_entropy, as one would by hand, and share nothing with the library.
"""

import argparse
import json
import pathlib
import shutil

import torch
import torch.nn.functional as F


def entropy(logits):
    return -(logits.softmax(1) * logits.log_softmax(1)).sum(1).mean(0)


def information_maximisation(logits, epsilon=1e-5):
    mean = logits.softmax(1).mean(0)
    return entropy(logits) - (-(mean * torch.log(mean + epsilon)).sum())


def pseudo_label(logits, beta=0.9):
    with torch.no_grad():
        confidence, labels = logits.softmax(1).max(1)
        kept = confidence > beta
    if not kept.any():  # the mean over nothing is NaN; the gradient PyTorch gives is zero
        return logits.sum() * 0
    return F.cross_entropy(logits[kept], labels[kept])


def shot(logits, beta=0.9, theta=0.1):
    return information_maximisation(logits) + theta * pseudo_label(logits, beta)


def generalised_cross_entropy(logits, q=0.8):
    probabilities = logits.softmax(1)
    chosen = probabilities[torch.arange(len(logits)), probabilities.argmax(1)]
    return ((1 - chosen ** q) / q).mean()


def soft_likelihood_ratio(logits, clip=0.99):
    p = torch.clamp(logits.softmax(1), min=0.0, max=clip)
    return -(p * torch.log(p / (torch.ones_like(p) - p) + 1e-5)).sum(1).mean()


LOSSES = {
    "entropy": (entropy, {}),
    "information_maximisation": (information_maximisation, {}),
    "information_maximisation:epsilon=0.01": (information_maximisation, {"epsilon": 0.01}),
    "pseudo_label": (pseudo_label, {}),
    "pseudo_label:beta=0.5": (pseudo_label, {"beta": 0.5}),
    "pseudo_label:beta=0": (pseudo_label, {"beta": 0.0}),
    "shot": (shot, {}),
    "shot:beta=0.4,theta=0.7": (shot, {"beta": 0.4, "theta": 0.7}),
    "shot:theta=0": (shot, {"theta": 0.0}),
    "generalised_cross_entropy": (generalised_cross_entropy, {}),
    "generalised_cross_entropy:q=0.3": (generalised_cross_entropy, {"q": 0.3}),
    "soft_likelihood_ratio": (soft_likelihood_ratio, {}),
    "soft_likelihood_ratio:clip=0.9": (soft_likelihood_ratio, {"clip": 0.9}),
}

# name, samples, classes, spread of the logits
BATCHES = [
    ("mixed", 32, 7, 3.0),
    ("unsure", 16, 10, 0.5),
    ("confident", 8, 4, 40.0),
    ("one", 1, 5, 6.0),
    ("many_classes", 6, 345, 4.0),
]


def make_case(batch, logits, spec):
    function, options = LOSSES[spec]
    leaf = logits.clone().requires_grad_()
    value = function(leaf, **options)
    (gradient,) = torch.autograd.grad(value, leaf)
    beta = options.get("beta", 0.9)
    labelled = function in (pseudo_label, shot)
    confident = int((logits.softmax(1).max(1).values > beta).sum()) if labelled else len(logits)
    return {
        "batch": batch,
        "loss": spec,
        "logits": logits.tolist(),
        "value": value.item(),
        "gradient": gradient.tolist(),
        "confident": confident,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    generator = torch.Generator().manual_seed(11)
    cases = []
    for batch, samples, classes, spread in BATCHES:
        logits = spread * torch.randn(samples, classes, generator=generator, dtype=torch.float64)
        cases += [make_case(batch, logits, spec) for spec in LOSSES]
    (folder / "cases.json").write_text(json.dumps(cases), encoding="utf-8")


if __name__ == "__main__":
    main()
