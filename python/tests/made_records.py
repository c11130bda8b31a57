"""Records made up for tests: small, and of every kind that readers meet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DOMAINS = ("fog", "snow")
LAYERS = ("conv1", "block1.bn", "block1.conv", "fc")
#: Batches of a domain, pictures of a batch.
BATCHES, IMAGES = 6, 20


def record(
    key: str = "a" * 32,
    method: str = "GALA",
    loss: str = "shot",
    wrong: int = 4,
    *,
    steps: int = 12,
    trial: int = 0,
    select: str = "gala:threshold=0.75,window=20",
    batch_ms: float = 10.0,
    gpu: str = "NVIDIA H200",
    visits: int = 1,
    **changes: Any,
) -> dict[str, Any]:
    """A run over two domains: `wrong` pictures of each batch of the first, half of the second's."""
    correct = [IMAGES - wrong] * BATCHES + [IMAGES - wrong // 2] * BATCHES
    names = [
        name if visits == 1 else f"{name} (visit {v + 1})"
        for v in range(visits)
        for name in DOMAINS
    ]
    scores = [
        {
            "name": names[i],
            "images": BATCHES * IMAGES,
            "correct": sum(correct[:BATCHES] if i % 2 == 0 else correct[BATCHES:]),
        }
        for i in range(len(names))
    ]
    error = 1 - sum(score["correct"] / score["images"] for score in scores) / len(scores)
    made: dict[str, Any] = {
        "schema": 1,
        "kind": "run",
        "key": key,
        "labels": {
            "plan": "test",
            "group": "",
            "row": method,
            "benchmark": "continual",
            "dataset": "CIFAR-10-C",
            "backbone": "WRN-16-2",
            "environment": "",
            "trial": trial,
            "loss": loss,
            "hyper": {"rate": "0.001"},
        },
        "spec": {
            "model": "wide_resnet:depth=16",
            "stream": f"continual:samples=file,visits={visits}",
            "loss": "shot:beta=0.9",
            "select": select,
            "optimizer": "adam:rate=0.001,beta1=0.9",
            "norm": "batch",
            "precision": "float32",
            "batch_size": IMAGES,
        },
        "data_hash": "0" * 64,
        "metrics": {"accuracy": 1 - error, "error": error, "forgetting": None},
        "domains": scores,
        "source": {
            "before": [{"name": "clean", "images": 100, "correct": 95}],
            "before_in_norm": [{"name": "clean", "images": 100, "correct": 93}],
            "after": [{"name": "clean", "images": 100, "correct": 90}],
        },
        "steps": steps,
        "refused": 0,
        "skipped": 1,
        "layers": [
            {
                "name": name,
                "block": (i > 0) * (i < 3),
                "parameters": 10,
                "chosen": i,
                "weight": i,
                "path": 0.1,
                "net": 0.05,
            }
            for i, name in enumerate(LAYERS)
        ],
        "choices": [[-3, 1], [2, 4], [-1, 1], [-2, 1], [0, 5]] if steps else [],
        "gap": {"steps": 0, "zero": 0, "quantiles": [], "decades": []},
        "over_time": {
            "images": [[IMAGES, 2 * BATCHES * visits]],
            "correct": correct * visits,
            "borders": [[i * BATCHES, name] for i, name in enumerate(names)],
        },
        "guard": {"judgements": 3, "collapses": 1, "rollbacks": 0, "stopped": False, "events": []},
        "cost": {
            "total_ms": 500.0,
            "load_ms": 1.0,
            "batch_ms": batch_ms,
            "step_ms": 8.0,
            "step_median_ms": 8.0,
            "step_95_ms": 9.0,
            "parts_ms": {"forward": 5.0, "backward": 3.0},
            "peak_memory": 2_000_000_000,
            "memory_of": "device",
        },
        "provenance": {
            "gala": "0.1.0",
            "gpu": gpu,
            "threads": 16,
            "jobs": 2,
            "date": "2026-11-16T00:32:42Z",
            "libtorch": "2.11.0",
        },
    }
    return {**made, **changes}


def write_store(folder: Path, lines: list[Any], end: str = "\n") -> Path:
    """A store with these lines; texts are written as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    (folder / "records.jsonl").write_text("\n".join(texts) + end)
    return folder


def several() -> list[dict[str, Any]]:
    """Methods of different errors and costs, two trials each, beside doing nothing."""
    idle = {"steps": 0, "loss": "", "select": "none"}
    made = []
    for trial in (0, 1):
        for i, (method, wrong, batch_ms, more) in enumerate(
            [
                ("Source", 12, 1.0, idle),
                ("Batch statistics", 8, 1.5, idle),
                ("GALA", 4, 6.0, {}),
                ("Tent", 6, 4.0, {"loss": "entropy", "select": "norm_affine"}),
                ("All layers", 18, 5.0, {"loss": "entropy", "select": "all"}),
            ]
        ):
            key = f"{trial}{i}" * 16
            given: dict[str, Any] = {
                "wrong": wrong + trial,
                "batch_ms": batch_ms,
                "trial": trial,
                **more,
            }
            made.append(record(key, method, **given))
    return made
