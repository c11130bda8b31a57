"""What only a GPU can show: equality with the CPU, capture, the time of a step. Prints JSON.

    python python/tests/gpu_trial.py [--repeats N] [--out FILE]

Ends with 1, and says why on stderr, where something differs, a pass is not captured that could be,
or a step of ResNet-50 is not three times as fast as the plain one. Not a test of pytest's: it wants
a GPU of its own. `--dry` goes through all of it on the CPU, with a small network, where nothing is
captured or fast: it shows that the script itself is sound.
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
from gala_tta import adapter as adapter_module
from gala_tta._views import VIEWS
from torch import Tensor, nn

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench" / "peers"))
import gpu_norms
import networks
import plain_step

METHODS: dict[str, dict[str, Any]] = {
    "gala, pseudo-labels": {
        "loss": "pseudo_label:beta=0.2",
        "select": "gala:window=4",
        "norm": "batch",
    },
    "gala, source": {
        "loss": "pseudo_label:beta=0.2",
        "select": "gala:window=4",
        "norm": "source",
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
    for name in ("tent", "eta", "rpl", "sar", "deyo", "roid", "palm", "law", "cotta", "t3a", "auto")
}


# Only the images that count are looked at again, or only where the teacher is unsure.
NOT_CAPTURED = ("deyo", "roid", "cotta", "auto")
# Steps by the sign of a gradient: numbers near 0 (a convolution's bias before a norm has no others)
# may take another one on another device. The same layers, or cosines near each other, will do.
BY_SIGNS = ("palm", "law", "cotta", "auto")
LEAST_GAIN = 3.0

DEVICE = "cuda"


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


def trace(options: dict[str, Any], device: str, last: bool = False, **more: Any) -> dict[str, Any]:
    """Run a few batches; what moved, the cosines, the answers. `last`: channels last."""
    layout = torch.channels_last if last else torch.contiguous_format
    net = small_net().to(device, memory_format=layout)
    with gala.Adapter(net, **options, **more) as adapter:
        steps, answers = [], []
        for images in stream(8):
            answers.append(adapter(images.to(device).contiguous(memory_format=layout)).cpu())
            assert adapter.last is not None
            steps += [(s.selected, s.cosines, s.loss) for s in adapter.last.steps]
        return {
            "steps": steps,
            "answers": torch.cat(answers),
            "problem": adapter.capture_problem,
            "notes": adapter.notes,
            "norm": adapter.options["norm"],
            "on_kernels": on_kernels(adapter),
        }


def on_kernels(adapter: gala.Adapter) -> tuple[int, int]:
    """How many norms our kernels computed, and how many there are."""
    assert adapter._norms is not None
    return adapter._norms.on_kernels, len(adapter._norms)


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
        host, eager = trace(options, "cpu"), trace(options, DEVICE, capture=False)
        captured = trace(options, DEVICE)
        found[name] = {
            "cpu_gpu": difference(host, eager),
            "eager_captured": difference(eager, captured),
            "capture_problem": captured["problem"],
            "notes": captured["notes"],
        }
    # The adapter asks for the heart by a name of its own.
    kept = _device.heart_for
    try:
        _device.heart_for = adapter_module.heart_for = lambda device: _core  # type: ignore[attr-defined]
        over_host = trace(METHODS["gala, pseudo-labels"], DEVICE)
    finally:
        _device.heart_for = adapter_module.heart_for = kept  # type: ignore[attr-defined]
    eager = trace(METHODS["gala, pseudo-labels"], DEVICE, capture=False)
    found["over the host"] = difference(eager, over_host) | {"notes": over_host["notes"]}
    return found


def channels_last() -> dict[str, Any]:
    """Compare CPU and GPU once more, where the GPU's norms are computed by our own kernels."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.deterministic = True
    found: dict[str, Any] = {}
    for name, options in METHODS.items():
        host, eager = trace(options, "cpu", True), trace(options, DEVICE, True, capture=False)
        captured = trace(options, DEVICE, True)
        found[name] = {
            "cpu_gpu": difference(host, eager),
            "eager_captured": difference(eager, captured),
            "capture_problem": captured["problem"],
            "norm": captured["norm"],
            "on_kernels": captured["on_kernels"],
        }
    return found


def views() -> dict[str, float]:
    """Compare looks at a batch on both sides; they should have the same bits."""
    found = {}
    for text in ("augment", "augment:padding=reflect,blur=no,noise=0", "patches"):
        looks = []
        for device in ("cpu", DEVICE):
            (name, options), *_ = _core.parse_parts("view", text)
            view = VIEWS[name](argparse.Namespace(**options))  # type: ignore[arg-type]
            view.attach(torch.device(device), (0.1, 0.2, 0.3), (0.5, 0.6, 0.7))
            view.draw(3, 5, 2)
            looks.append(view.look(stream(1)[0].to(device), 1).cpu())
        found[text] = float((looks[0] - looks[1]).abs().max())
    return found


def states() -> bool:
    """Whether a run that goes on from a state gives what one without a break does."""
    with gala.Adapter(small_net().to(DEVICE), "gala") as whole:
        for images in stream(8)[:4]:
            whole(images.to(DEVICE))
        state = whole.state_dict()
        expected = [whole(images.to(DEVICE)).cpu() for images in stream(8)[4:]]
    with gala.Adapter(small_net().to(DEVICE), "gala") as other:
        other.load_state_dict(state)
        again = [other(images.to(DEVICE)).cpu() for images in stream(8)[4:]]
    return all(torch.allclose(a, b, atol=1e-5) for a, b in zip(expected, again, strict=True))


class Asking(nn.Module):
    """A module that no graph can hold: it asks the GPU for a number on its way."""

    def __init__(self) -> None:
        super().__init__()
        self.net = small_net()

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.net(images)
        return logits if float(logits.detach().abs().max()) > 0 else logits * 2


def stubborn() -> dict[str, Any]:
    """Adapt what cannot be captured: it says so, answers all the same, and holds no more memory."""
    answers, held, problem = [], [], ""
    images = stream(1)[0].to(DEVICE)
    for capture in (False, True):
        with gala.Adapter(Asking().to(DEVICE), "gala", capture=capture) as adapter:
            each = []
            for number in range(60):
                each.append(adapter(images.clone()).cpu())
                if DEVICE == "cuda" and number in (20, 59):
                    held.append(torch.cuda.memory_allocated())
            problem = adapter.capture_problem
        answers.append(torch.cat(each))
    return {
        "problem": problem,
        "logits": float((answers[0] - answers[1]).abs().max()),
        "bytes_grown": [
            after - before for before, after in zip(held[::2], held[1::2], strict=True)
        ],
    }


def wait() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def milliseconds(step: Callable[[], Any], repeats: int) -> float:
    times = []
    for number in range(repeats + 5):
        wait()
        start = time.perf_counter()
        step()
        wait()
        if number >= 5:
            times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def timing(repeats: int, network: str) -> dict[str, Any]:
    """Time a step of ResNet-50 at batch 32 in TF32: captured, not captured, and the plain one."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.deterministic = False
    torch.backends.cudnn.benchmark = True
    last = torch.channels_last
    side = 224 if DEVICE == "cuda" else 32
    images = torch.rand(32, 3, side, side, device=DEVICE).contiguous(memory_format=last)
    found: dict[str, Any] = {"network": network}
    # As in bench/peers: every answer counts, and the rate hardly moves anything.
    options = {"loss": "pseudo_label:beta=0", "select": "gala", "optim": "adam:rate=1e-7"}
    for name, capture in (("captured", True), ("uncaptured", False)):
        torch.manual_seed(0)
        net = networks.make(network).to(DEVICE, memory_format=last).eval()
        with gala.Adapter(net, **options, capture=capture) as adapter:  # type: ignore[arg-type]
            found[name] = milliseconds(lambda a=adapter: a(images), repeats)
            found[f"{name}_problem"] = adapter.capture_problem
            found[f"{name}_norms_on_kernels"] = on_kernels(adapter)
    torch.manual_seed(0)
    net = networks.make(network).to(DEVICE, memory_format=last).eval()
    plain = plain_step.PlainGala(net, 1e-7, beta=0)
    found["plain"] = milliseconds(lambda: plain.step(images), repeats)
    found["plain_over_captured"] = found["plain"] / found["captured"]
    return found


def main() -> int:
    global DEVICE
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--dry", action="store_true", help="on the CPU, with a small network")
    arguments = parser.parse_args()
    if arguments.dry:
        DEVICE, arguments.repeats = "cpu", 1
    elif not torch.cuda.is_available():
        print("gpu_trial: there is no GPU")
        return 1
    found: dict[str, Any] = {
        "gpu": "none" if arguments.dry else torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "heart": _device.heart_for(torch.device(DEVICE)).__name__,
    }
    network = "resnet18" if arguments.dry else "resnet50"
    parts: dict[str, Callable[[], Any]] = {
        "timing": lambda: timing(arguments.repeats, network),
        "norms": lambda: gpu_norms.trial(DEVICE),
        "equality": equality,
        "channels_last": channels_last,
        "stubborn": stubborn,
        "views": views,
        "state": states,
    }
    for name, part in parts.items():
        try:
            found[name] = part()
        except Exception:  # the other parts are worth knowing all the same
            found[name] = {"error": traceback.format_exc()}
        if arguments.out:
            arguments.out.write_text(json.dumps(found, indent=1))
    print(json.dumps(found, indent=1))
    wrong = problems(found)
    for each in wrong:
        print(f"gpu_trial: {each}", file=sys.stderr)
    return 1 if wrong else 0


def problems(found: dict[str, Any]) -> list[str]:
    """Everything that is not as it must be."""
    parts = ("timing", "norms", "equality", "channels_last", "stubborn", "views", "state")
    wrong = [f"{name} ended with an error" for name in parts if "error" in str(found[name])[:12]]
    if wrong:
        return wrong
    for layout in ("equality", "channels_last"):
        for name, each in found[layout].items():
            for what, part in each.items():
                if not isinstance(part, dict):
                    continue
                near = part["cosine"] < 5e-3
                near |= name in BY_SIGNS and part["steps_of_other_layers"] == 0
                if not (near and part["logits"] < 5e-2):
                    wrong.append(f"{layout}: {name}, {what}: {part}")
    wrong += gpu_norms.problems(found["norms"], DEVICE == "cuda")
    for name, distance in found["views"].items():
        if distance != 0:
            wrong.append(f"view {name}: {distance} apart")
    if found["state"] is not True:
        wrong.append("a state does not go on to the same answers")
    if found["stubborn"]["logits"] > 1e-3:
        wrong.append(f"after a capture that failed: {found['stubborn']}")
    return wrong if DEVICE == "cpu" else wrong + gpu_problems(found)


def gpu_problems(found: dict[str, Any]) -> list[str]:
    wrong = []
    for layout in ("equality", "channels_last"):
        for name in METHODS:
            problem = found[layout][name]["capture_problem"]
            if bool(problem) != (name in NOT_CAPTURED):
                wrong.append(f"{layout}: {name}: capture problem {problem!r}")
    for name, each in found["channels_last"].items():
        taken, every = each["on_kernels"]
        if each["norm"] in ("source", "batch") and taken != every:
            wrong.append(f"{name}: {taken} of {every} norms by our kernels")
    for name in ("captured", "uncaptured"):
        taken, every = found["timing"][f"{name}_norms_on_kernels"]
        if taken != every:
            wrong.append(f"ResNet-50, {name}: {taken} of {every} norms by our kernels")
    if found["timing"]["captured_problem"]:
        wrong.append(f"ResNet-50 is not captured: {found['timing']['captured_problem']}")
    if found["timing"]["plain_over_captured"] < LEAST_GAIN:
        wrong.append(f"plain / captured {found['timing']['plain_over_captured']:.2f}")
    if not found["stubborn"]["problem"]:
        wrong.append("a module that asks the GPU for a number was captured")
    # One more tensor of a batch's images for each batch would be 8 MB.
    if any(grown > 1 << 20 for grown in found["stubborn"]["bytes_grown"]):
        wrong.append(f"memory grows: {found['stubborn']['bytes_grown']}")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
