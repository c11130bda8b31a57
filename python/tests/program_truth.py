"""What the program says of corruptions and orders, for tests that compare the package with it.

`GALA_PROGRAM=build/cli/gala python python/tests/program_truth.py` writes `golden.json` beside it.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

GOLDEN = Path(__file__).with_name("golden.json")
SEED = 7
CORRUPTIONS = ["fog", "snow", "contrast"]
IMAGES, CLASSES = 40, 10
#: Orders that are compared, with the severities of the data they are over.
STREAMS = [
    ("continual", [5]),
    ("continual:samples=shuffled", [5]),
    ('continual:samples=shuffled,visits=3,order="snow,fog"', [5]),
    ("mixed", [5]),
    ("correlated", [5]),
    ("correlated:by=dirichlet,delta=0.1,slots=8", [5]),
    ("correlated:by=dirichlet,delta=2,slots=5,visits=2", [5]),
    ("gradual:samples=shuffled", [1, 2, 3, 4, 5]),
    ('gradual:form=symmetric,samples=shuffled,order="contrast,fog"', [1, 2, 3, 4, 5]),
]


def program() -> str | None:
    return os.environ.get("GALA_PROGRAM")


def pictures(count: int) -> NDArray[np.uint8]:
    """Pictures that differ from each other, from whole numbers alone: slopes, waves and grain."""
    n, y, x, c = np.ogrid[:count, :32, :32, :3]
    grain = (n * 3072 + y * 96 + x * 3 + c + 1) * 2654435761 % 2**32 >> 26
    waves = (x * (n % 5 + 1) + y * (n % 7 + 2)) * 5 % 128
    light = (n * n + 37 * n * (c + 1)) % 101
    return np.clip(grain + waves + light, 0, 255).astype(np.uint8)


def labels() -> NDArray[np.uint8]:
    """Some classes have many pictures, some few."""
    i = np.arange(IMAGES)
    return (i * i * 3 % 17 % CLASSES).astype(np.uint8)


def _run(*words: str) -> None:
    ending = subprocess.run([str(program()), *words], capture_output=True, text=True, check=False)
    assert ending.returncode == 0, ending.stderr


def corruption_hashes() -> dict[str, list[str]]:
    """SHA-256 of what `gala corrupt` makes of the pictures: name to severities 1 to 5."""
    with tempfile.TemporaryDirectory() as folder:
        clean, made = Path(folder) / "clean.npy", Path(folder) / "made"
        np.save(clean, pictures(20))
        _run("corrupt", "--data", f"arrays:images={clean}", "--corruption", "all,extra",
             "--severity", "all", "--seed", str(SEED), "--out", str(made), "--quiet")  # fmt: skip
        return {
            path.stem: [
                hashlib.sha256(part.tobytes()).hexdigest() for part in np.split(np.load(path), 5)
            ]
            for path in sorted(made.glob("*.npy"))
        }


def _answers(folder: Path, names: str, severities: str, stream: str) -> list[tuple[str, ...]]:
    """What two networks that do not adapt say of each picture of a stream."""
    out = folder / "answers.csv"
    data = f'cifar10c:path={folder},corruption="{names}",severity="{severities}"'
    said: list[list[str]] = []
    for width in (1, 2):
        _run("adapt", "--model", f"wide_resnet:depth=10,width={width},classes=10", "--data", data,
             "--stream", stream, "--select", "none", "--norm", "source", "--batch-size", "1",
             "--guard", "off", "--layout", "contiguous", "--threads", "1", "--deterministic",
             "--seed", str(SEED), "--predictions", str(out), "--quiet")  # fmt: skip
        with out.open() as lines:
            said.append([",".join(row[1:4]) for row in csv.reader(lines)][1:])
    return list(zip(*said, strict=True))


def stream_orders() -> dict[str, list[list[int]]]:
    """Orders of the program: spec to (domain, index) of each position.

    The program does not print them. Each picture is known by what two networks answer to it, which
    differs for all of them.
    """
    orders = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "labels.npy", np.tile(labels(), 5))
        every = pictures(len(CORRUPTIONS) * 5 * IMAGES).reshape(len(CORRUPTIONS), -1, 32, 32, 3)
        for corruption, part in zip(CORRUPTIONS, every, strict=True):
            np.save(folder / f"{corruption}.npy", part)
        known = {}
        for corruption in CORRUPTIONS:
            for severity in range(1, 6):
                answers = _answers(folder, corruption, str(severity), "single")
                for index, answer in enumerate(answers):
                    assert answer not in known, "two pictures get the same answer"
                    known[answer] = (corruption, severity, index)
        for spec, severities in STREAMS:
            chosen = ",".join(map(str, severities))
            order = []
            for answer in _answers(folder, ",".join(CORRUPTIONS), chosen, spec):
                corruption, severity, index = known[answer]
                domain = CORRUPTIONS.index(corruption) * len(severities)
                order.append([domain + severities.index(severity), index])
            orders[spec] = order
    return orders


if __name__ == "__main__":
    truth = {"corruptions": corruption_hashes(), "streams": stream_orders()}
    GOLDEN.write_text(json.dumps(truth, separators=(",", ":")) + "\n")
    print(f"{GOLDEN}: {GOLDEN.stat().st_size} bytes")
