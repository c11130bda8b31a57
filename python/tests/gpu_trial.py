"""What only a GPU can show: equality with the CPU, and the time of a ResNet-50 step. Prints JSON.

    python python/tests/gpu_trial.py [--repeats N] [--out FILE]

Ends with 1 where something differs. Not a test of pytest's: it wants a GPU of its own.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

import gala_tta as gala
import torch
from gala_tta import _core, _device
from gala_tta._views import VIEWS
from torch import Tensor, nn

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench" / "peers"))
import networks
import plain_step

METHODS: dict[str, dict[str, Any]] = {
    "gala, pseudo-labels": {
        "loss": "pseudo_label:beta=0.2",
        "select": "gala:window=4",
        "norm": "batch",
    },
    "gala, sgd, running": {
        "loss": "shot",
        "select": "gala:window=4",
        "optim": "sgd:rate=0.01",
        "norm": "running",
    },
    "auto_snr": {"loss": "entropy", "select": "auto_snr", "norm": "batch"},
}
METHODS |= {
    name: {"method": name}
    for name in ("tent", "eta", "rpl", "sar", "deyo", "roid", "palm", "law", "cotta", "t3a")
}


def small_net() -> nn.Sequential:
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    )
    with torch.no_grad():
        net[-1].weight.mul_(30)
    return net


def stream(count: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.rand(32, 3, 24, 24, generator=generator) for _ in range(count)]


def trace(options: dict[str, Any], device: str, **more: Any) -> dict[str, Any]:
    """Run a few batches; what moved, the cosines, the answers."""
    with gala.Adapter(small_net().to(device), **options, **more) as adapter:
        steps, answers = [], []
        for images in stream(8):
            answers.append(adapter(images.to(device)).cpu())
            assert adapter.last is not None
            steps += [(s.selected, s.cosines, s.loss) for s in adapter.last.steps]
        return {
            "steps": steps,
            "answers": torch.cat(answers),
            "problem": adapter.capture_problem,
            "notes": adapter.notes,
        }


def difference(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """Say how far two runs are apart."""
    assert len(a["steps"]) == len(b["steps"])
    other_layers = sum(x[0] != y[0] for x, y in zip(a["steps"], b["steps"], strict=True))
    cosines = [
        abs(p - q)
        for x, y in zip(a["steps"], b["steps"], strict=True)
        for p, q in zip(x[1], y[1], strict=True)
    ]
    return {
        "steps": len(a["steps"]),
        "steps_of_other_layers": other_layers,
        "cosine": max(cosines, default=0.0),
        "logits": float((a["answers"] - b["answers"]).abs().max()),
    }


def equality() -> dict[str, Any]:
    """Compare CPU and GPU, captured and not, and the way over the host."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.deterministic = True
    found: dict[str, Any] = {}
    for name, options in METHODS.items():
        host, eager = trace(options, "cpu"), trace(options, "cuda", capture=False)
        captured = trace(options, "cuda")
        found[name] = {
            "cpu_gpu": difference(host, eager),
            "eager_captured": difference(eager, captured),
            "capture_problem": captured["problem"],
            "notes": captured["notes"],
        }
    kept = _device.heart_for
    try:
        _device.heart_for = lambda device: _core
        over_host = trace(METHODS["gala, pseudo-labels"], "cuda")
    finally:
        _device.heart_for = kept
    eager = trace(METHODS["gala, pseudo-labels"], "cuda", capture=False)
    found["over the host"] = difference(eager, over_host) | {"notes": over_host["notes"]}
    return found


def views() -> dict[str, float]:
    """Compare looks at a batch on both sides; they should have the same bits."""
    found = {}
    for text in ("augment", "augment:padding=reflect,blur=no,noise=0", "patches"):
        looks = []
        for device in ("cpu", "cuda"):
            (name, options), *_ = _core.parse_parts("view", text)
            view = VIEWS[name](argparse.Namespace(**options))  # type: ignore[arg-type]
            view.attach(torch.device(device), (0.1, 0.2, 0.3), (0.5, 0.6, 0.7))
            view.draw(3, 5, 2)
            looks.append(view.look(stream(1)[0].to(device), 1).cpu())
        found[text] = float((looks[0] - looks[1]).abs().max())
    return found


def states() -> bool:
    """Whether a run that goes on from a state gives what one without a break does."""
    with gala.Adapter(small_net().cuda(), "gala") as whole:
        for images in stream(8)[:4]:
            whole(images.cuda())
        state = whole.state_dict()
        expected = [whole(images.cuda()).cpu() for images in stream(8)[4:]]
    with gala.Adapter(small_net().cuda(), "gala") as other:
        other.load_state_dict(state)
        again = [other(images.cuda()).cpu() for images in stream(8)[4:]]
    return all(torch.allclose(a, b, atol=1e-5) for a, b in zip(expected, again, strict=True))


def milliseconds(step: Callable[[], Any], repeats: int) -> float:
    times = []
    for number in range(repeats + 5):
        torch.cuda.synchronize()
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        if number >= 5:
            times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def timing(repeats: int) -> dict[str, Any]:
    """Time a step of ResNet-50 at batch 32 in TF32: captured, not captured, and the plain one."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.deterministic = False
    torch.backends.cudnn.benchmark = True
    last = torch.channels_last
    images = torch.rand(32, 3, 224, 224, device="cuda").contiguous(memory_format=last)
    found: dict[str, Any] = {}
    # As in bench/peers: every answer counts, and the rate hardly moves anything.
    options = {"loss": "pseudo_label:beta=0", "select": "gala", "optim": "adam:rate=1e-7"}
    for name, capture in (("captured", True), ("uncaptured", False)):
        torch.manual_seed(0)
        net = networks.make("resnet50").to("cuda", memory_format=last).eval()
        with gala.Adapter(net, **options, capture=capture) as adapter:  # type: ignore[arg-type]
            found[name] = milliseconds(lambda a=adapter: a(images), repeats)
            found[f"{name}_problem"] = adapter.capture_problem
    torch.manual_seed(0)
    net = networks.make("resnet50").to("cuda", memory_format=last).eval()
    plain = plain_step.PlainGala(net, 1e-7, beta=0)
    found["plain"] = milliseconds(lambda: plain.step(images), repeats)
    found["plain_over_captured"] = found["plain"] / found["captured"]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--out", type=pathlib.Path)
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("gpu_trial: there is no GPU")
        return 1
    found: dict[str, Any] = {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "heart": _device.heart_for(torch.device("cuda")).__name__,
    }
    parts: dict[str, Callable[[], Any]] = {
        "timing": lambda: timing(arguments.repeats),
        "equality": equality,
        "views": views,
        "state": states,
    }
    for name, part in parts.items():
        try:
            found[name] = part()
        except Exception:  # the other parts are worth knowing all the same
            found[name] = {"error": traceback.format_exc()}
    text = json.dumps(found, indent=1)
    print(text)
    if arguments.out:
        arguments.out.write_text(text)
    return 0 if is_sound(found) else 1


def is_sound(found: dict[str, Any]) -> bool:
    """Whether everything that must be equal is."""
    if any("error" in str(found[name])[:12] for name in ("timing", "equality", "views")):
        return False
    equal = [part for each in found["equality"].values() for part in each.values()]
    compared = [part for part in equal if isinstance(part, dict)]
    close = all(part["cosine"] < 5e-3 and part["logits"] < 5e-2 for part in compared)
    return close and all(each == 0 for each in found["views"].values()) and found["state"] is True


if __name__ == "__main__":
    sys.exit(main())
