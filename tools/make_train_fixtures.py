"""Writes what the training tests compare with: python make_train_fixtures.py FOLDER

A small network of make_model_fixtures.py is trained by torch.optim.SGD with Nesterov momentum, weight
decay, label smoothing and a cosine rate with warm-up, over batches in file order, and a copy of it by
torch.optim.Adam alone. FOLDER gets images.npy (float32), labels.npy, first.pt and last.pt (weights
before and after), losses.npy, last_adam.pt and losses_adam.npy.
Everything is computed in double precision from float32 images and weights. The images are few and
small because every relu whose input is within rounding of zero may fall to the other side in single
precision, and the two runs part there: with 300,000 relus a step that happens every few steps.
"""

import copy
import functools
import math
import sys
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

from make_model_fixtures import Norm, WideResNet

STEPS = 20
BATCH = 8
WARMUP = 4
RATE = 0.1
ADAM_RATE = 0.001


def rate(step):
    if step < WARMUP:
        return RATE * (step + 1) / WARMUP
    return RATE * (1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP))) / 2


def save(network, path):
    torch.save({name: value.float() for name, value in network.state_dict().items()}, path)


def train(network, optimizer, loss_of, rate_of, images, labels):
    """The losses of all steps, over batches in file order."""
    losses = []
    for step in range(STEPS):
        optimizer.param_groups[0]["lr"] = rate_of(step)
        batch = slice(step * BATCH, (step + 1) * BATCH)
        loss = loss_of(network(images[batch].double())[1], labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return np.array(losses, dtype=np.float64)


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    labels = torch.randint(5, (STEPS * BATCH,))
    # Every class has a brightness of its own, so that there is something to learn.
    images = torch.randn(STEPS * BATCH, 3, 8, 8) * 0.5 + labels[:, None, None, None] * 0.3
    np.save(folder / "images.npy", images.numpy())
    np.save(folder / "labels.npy", labels.numpy())

    network = WideResNet(10, 1, classes=5)
    for module in network.modules():
        if isinstance(module, Norm):
            module.mode = ("training", 0.1)
    save(network, folder / "first.pt")
    network.double()
    other = copy.deepcopy(network)
    sgd = torch.optim.SGD(network.parameters(), lr=RATE, momentum=0.9, nesterov=True, weight_decay=5e-4)
    smoothed = functools.partial(F.cross_entropy, label_smoothing=0.1)
    np.save(folder / "losses.npy", train(network, sgd, smoothed, rate, images, labels))
    save(network, folder / "last.pt")

    adam = torch.optim.Adam(other.parameters(), lr=ADAM_RATE)
    np.save(folder / "losses_adam.npy",
            train(other, adam, F.cross_entropy, lambda step: ADAM_RATE, images, labels))
    save(other, folder / "last_adam.pt")


main()
