"""The adapter in Python and the program give the same trace on the same network and data."""

from __future__ import annotations

import csv
import json
import os
import pathlib
import subprocess
from typing import Any

import gala_tta as gala
import numpy as np
import pytest
import torch
from wide_resnet import ASSETS, as_input, noisy_images, source_model

PROGRAM = os.environ.get("GALA_PROGRAM", "")
BATCH, IMAGES = 32, 128

METHODS: dict[str, dict[str, str]] = {
    "gala with pseudo-labels": {"loss": "pseudo_label", "select": "gala", "norm": "batch"},
    "gala with shot": {"loss": "shot", "select": "gala:window=3", "norm": "batch"},
    "gala by block": {"method": "gala", "partition": "block"},
    "gala by tensor, running": {"method": "gala", "partition": "tensor", "norm": "running"},
    "auto_rgn, blend": {"loss": "entropy", "select": "auto_rgn", "norm": "blend:weight=0.3"},
    "random, sgd": {"loss": "shot", "select": "random", "optimizer": "sgd:rate=0.01,momentum=0.9"},
    "two steps, after": {"method": "tent", "inner_steps": "2", "predict": "after"},
    "robust norms": {"method": "tent", "norm": "running:momentum=0.05,gradient=yes"},
    "balanced norms": {"method": "tent", "norm": "balanced:momentum=0.05,common=0.1"},
    "balanced norms of two networks": {
        "method": "rotta",
        "store": "balanced:size=16,every=16",
        "norm": "balanced",
    },
    "law as published": {
        "method": "law",
        "select": "law:carried=yes",
        "loss": "entropy+consistency:form=cross_entropy,per_class=0.1,all=yes",
    },
    "kept images": {"method": "rotta", "store": "balanced:size=16,every=16"},
    "a window": {"method": "tent", "store": "window:length=64"},
    "petta": {"method": "petta", "store": "balanced:size=16,every=0", "source_data": "SOURCE"},
    "eata": {"method": "eata", "penalty": "fisher:weight=5,images=64", "source_data": "SOURCE"},
    "distance": {"method": "tent", "penalty": "distance:weight=0.5", "seed": "3"},
}
RECIPES = "auto tent eta rpl sar deyo roid cmf palm law rdumb cotta memo gala bn_alpha lame t3a"
METHODS.update({name: {"method": name} for name in RECIPES.split(" ")})


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> tuple[pathlib.Path, np.ndarray]:
    folder = tmp_path_factory.mktemp("trace")
    images = noisy_images(IMAGES)
    np.save(folder / "images.npy", images)
    labels = np.load(ASSETS / "cifar10_test_2000_labels.npy")[:IMAGES]
    np.save(folder / "labels.npy", labels)
    # Other images than those of the stream, as a source would have them.
    np.save(folder / "source.npy", noisy_images(IMAGES + 64)[IMAGES:])
    every = np.load(ASSETS / "cifar10_test_2000_labels.npy")
    np.save(folder / "source_labels.npy", every[IMAGES : IMAGES + 64])
    return folder, images


def tolerance() -> dict[str, float]:
    """With the LibTorch that the program was built with there is nothing to tolerate."""
    said = subprocess.run([PROGRAM, "--version"], check=True, capture_output=True, text=True).stdout
    same = torch.__version__.split("+")[0] in said
    return {"rel": 0, "abs": 0} if same else {"rel": 1e-4, "abs": 1e-5}


def by_program(
    folder: pathlib.Path, options: dict[str, str], count: int
) -> tuple[list[dict[str, Any]], list[tuple[int, float]]]:
    source = f"arrays:images={folder}/source.npy,labels={folder}/source_labels.npy"
    flags = [
        part
        for name, value in options.items()
        for part in ("--" + name.replace("_", "-"), value.replace("SOURCE", source))
    ]
    np.save(folder / "some.npy", np.load(folder / "images.npy")[:count])
    np.save(folder / "some_labels.npy", np.load(folder / "labels.npy")[:count])
    command = [
        PROGRAM,
        "adapt",
        "--weights",
        str(ASSETS / "wrn16_2_cifar10.safetensors"),
        "--data",
        f"arrays:images={folder}/some.npy,labels={folder}/some_labels.npy",
        "--batch-size",
        str(BATCH if options.get("method") != "memo" else 1),
        "--threads",
        "1",
        "--quiet",
        "--trace",
        str(folder / "trace.jsonl"),
        "--predictions",
        str(folder / "predictions.csv"),
        *flags,
    ]
    subprocess.run(command, check=True, capture_output=True)
    lines = (folder / "trace.jsonl").read_text().splitlines()
    steps = [entry for line in lines if "step" in (entry := json.loads(line))]
    with open(folder / "predictions.csv", newline="") as file:
        answers = [(int(r["prediction"]), float(r["confidence"])) for r in csv.DictReader(file)]
    return steps, answers


@pytest.mark.skipif(not PROGRAM, reason="GALA_PROGRAM does not name the program")
@pytest.mark.parametrize("name", METHODS)
def test_the_trace_is_the_programs(name: str, data: tuple[pathlib.Path, np.ndarray]) -> None:
    folder, images = data
    options = METHODS[name]
    memo = options.get("method") == "memo"
    count = 4 if memo else IMAGES
    steps, answers = by_program(folder, options, count)

    allowed = tolerance()
    records, predictions, sure = [], [], []
    given: dict[str, Any] = dict(options)
    if "source_data" in options:
        given["source_data"] = as_input(np.load(folder / "source.npy")).split(BATCH)
    with gala.Adapter(source_model(), **given) as adapter:
        for batch in as_input(images[:count]).split(1 if memo else BATCH):
            logits = adapter(batch)
            assert adapter.last is not None
            records += adapter.last.steps
            predictions += adapter.last.predictions
            sure += torch.softmax(logits.double(), 1).amax(1).tolist()
        layers = adapter.layers

    assert len(records) == len(steps)
    for record, step in zip(records, steps, strict=True):
        assert record.step == step["step"]
        assert record.loss == pytest.approx(step["loss"], **allowed)
        theirs = step.get("layers", [])
        if theirs:
            assert layers == [layer["name"] for layer in theirs]
        assert [weight != 0 for weight in record.weights] == [
            layer["weight"] != 0 for layer in theirs
        ]
        for key, mine in {
            "cosine": record.cosines,
            "update_norm": record.update_norms,
            "weight": record.weights,
        }.items():
            assert mine == pytest.approx([layer[key] for layer in theirs], **allowed)
    assert [answer for answer, _ in answers] == predictions
    # The program writes six digits.
    assert sure == pytest.approx(
        [each for _, each in answers], abs=1e-4 if allowed["abs"] else 1e-6
    )
