"""A step of the Python package beside the program's, on the same network and images, on the CPU.

    python_step.py PROGRAM [--threads N] [--rounds N] [--batch N] [--out FILE]

Both take the demo's network and images, in turns; the medians of milliseconds a step are printed. The
program's is what its trace says (forward, loss, backward, measure, select, apply), ours the whole call.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch

import gala_tta

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python" / "tests"))
import wide_resnet

METHODS = {
    "gala": ["--method", "gala"],
    "tent": ["--method", "tent"],
    "roid": ["--method", "roid"],
}


def by_program(program, flags, threads, batch, folder):
    trace = folder / "trace.jsonl"
    subprocess.run([program, "adapt", "--weights", ROOT / "assets/wrn16_2_cifar10.safetensors",
                    "--data", f"cifar10:path={ROOT}/assets/cifar10_test_2000.png", "--quiet",
                    "--batch-size", str(batch), "--threads", str(threads), "--trace", trace,
                    *flags], check=True, capture_output=True)
    steps = [json.loads(line) for line in trace.read_text().splitlines()]
    return [sum(step["milliseconds"].values()) if isinstance(step["milliseconds"], dict)
            else step["milliseconds"] for step in steps if "milliseconds" in step][5:-1]


def by_python(method, images):
    times = []
    with gala_tta.Adapter(wide_resnet.source_model(), method) as adapter:
        for batch in images:
            start = time.perf_counter()
            adapter(batch)
            times.append(1e3 * (time.perf_counter() - start))
    return times[5:-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--out", type=pathlib.Path)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    rows = wide_resnet.Image.open(ROOT / "assets/cifar10_test_2000.png")
    pictures = wide_resnet.np.asarray(rows).reshape(-1, 32, 32, 3)
    images = wide_resnet.as_input(pictures).split(arguments.batch)
    found = {"torch": torch.__version__, "threads": arguments.threads, "batch": arguments.batch}
    with tempfile.TemporaryDirectory() as folder:
        for name, flags in METHODS.items():
            theirs, ours = [], []
            for _ in range(arguments.rounds):  # in turns: other work on the machine hits both
                theirs.append(statistics.median(by_program(
                    arguments.program, flags, arguments.threads, arguments.batch,
                    pathlib.Path(folder))))
                ours.append(statistics.median(by_python(name, images)))
            found[name] = {"program": min(theirs), "python": min(ours),
                           "ratio": min(ours) / min(theirs), "rounds": [theirs, ours]}
    text = json.dumps(found, indent=1)
    print(text)
    if arguments.out:
        arguments.out.write_text(text)


if __name__ == "__main__":
    main()
