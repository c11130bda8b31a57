#!/usr/bin/env python3
"""Runs the published code of the methods and `gala adapt` on the same batches, and compares their answers.

    published.py --published DIR [--palm DIR] [--rotta DIR] [--petta DIR] --program build/cli/gala
                 --weights WRN.safetensors --images x.npy --labels y.npy [--methods tent,eta,..]
                 [--source-images clean.npy] [--deterministic-views] [--out FILE.json]

DIR are checkouts of mariodoebler/test-time-adaptation, sarthaxxxxx/PALM, BIT-DA/RoTTA and
hthieu166/petta, which run as they are, with their CIFAR-10-C settings; only their networks and data
loaders are replaced by ours. Images are uint8 N x 32 x 32 x 3, in file order, in whole batches.

Methods that draw nothing are compared answer by answer, the others in error alone. Exit code: 1 when
more than 0.5 % of a method's answers differ, 2 when something is missing or fails.
"""
import argparse
import importlib.util
import json
import multiprocessing
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
import types
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

ALLOWED = 0.005  # share of answers that may differ
SOURCE_IMAGES = 2000  # as many as EATA's settings ask for
PACKAGES = ("numpy", "torch", "torchvision", "safetensors", "yacs")


@dataclass(frozen=True)
class Method:
    folder: str  # the option that names its checkout
    module: str
    drawn: bool = False
    source: bool = False
    ours: tuple[str, ...] = ()  # instead of --method NAME
    still: tuple[str, ...] = ()  # what makes it draw nothing: our flags with --deterministic-views


METHODS = {
    "norm_test": Method("published", "norm", ours=("--select", "none", "--norm", "batch")),
    "tent": Method("published", "tent"),
    "eta": Method("published", "eata"),
    "eata": Method("published", "eata", source=True),
    "rpl": Method("published", "rpl"),
    "sar": Method("published", "sar"),
    "deyo": Method("published", "deyo", drawn=True),
    "roid": Method("published", "roid", drawn=True),
    "cmf": Method("published", "cmf", drawn=True),
    "cotta": Method("published", "cotta", drawn=True),
    "palm": Method("palm", "ours", drawn=True, still=("--view", "flip")),
    "law": Method("palm", "law", drawn=True, still=("--view", "flip"), ours=(
        "--method", "law", "--select", "law:carried=yes",
        "--loss", "entropy+consistency:form=cross_entropy,per_class=0.1,all=yes")),
    "rotta": Method("rotta", "rotta", drawn=True, still=("--view", "flip")),
    "petta": Method("petta", "petta", drawn=True, source=True, still=("--view", "flip")),
}
MARKS = {"published": "methods/tent.py", "palm": "methods/ours.py",
         "rotta": "core/adapter/rotta.py", "petta": "src/adapter/petta.py"}


def fail(text: str) -> NoReturn:
    print(f"published.py: {text}", file=sys.stderr)
    sys.exit(2)


# The published side: a process of its own for every run, as the checkouts share names of modules.

def stub(name: str, **members) -> None:
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__dict__.update(members)


def prepare(device: str, seed: int, tf32: bool) -> None:
    import numpy as np
    import torch
    sys.stdout = open(os.devnull, "w")
    warnings.simplefilter("ignore")
    try:
        import torchvision
    except RuntimeError:  # made for another torch; of its compiled part nothing is used
        for name in [name for name in sys.modules if name.startswith("torchvision")]:
            del sys.modules[name]
        for name in ("nms", "qnms"):
            torch.library.define(f"torchvision::{name}", "(Tensor a, Tensor b, float c) -> Tensor")
        import torchvision  # noqa: F401
    if device == "cpu":  # some of the code names the GPU
        torch.Tensor.cuda = torch.nn.Module.cuda = lambda self, *_, **__: self
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = tf32
    for generator in (torch.manual_seed, np.random.seed, random.seed):
        generator(seed)


def load_network(weights: str):
    """A WideResNet of the size that the file holds."""
    from safetensors.torch import load_file

    import networks
    values = {name: value.float() for name, value in load_file(weights).items()}
    blocks = len({name.split(".")[2] for name in values if name.startswith("block1.layer.")})
    first, head = values.get("block1.layer.0.conv1.weight"), values.get("fc.weight")
    if first is None or head is None:
        raise ValueError(f"{weights} is not a WideResNet")
    net = networks.WideResNet(6 * blocks + 4, len(first) // 16, len(head))
    values |= {name: value for name, value in net.state_dict().items() if name.endswith("num_batches_tracked")}
    net.load_state_dict(values)
    net.model_preprocess = None
    return net.eval()


def features(net, x):
    x = net.conv1(x)
    for block in (net.block1, net.block2, net.block3):
        x = block.layer(x)
    return net.bn1(x).relu().mean((2, 3))


def build(name: str, root: Path, net, batch_size: int, source, still: bool, scratch: str):
    """The published method, ready to be called with a batch of images (PeTTA: and its labels)."""
    def source_loader(*_, batch_size=128, **__):  # no label of a source image is used
        return None, list(zip(source.split(batch_size), source.new_zeros(len(source)).split(batch_size)))

    method, classes = METHODS[name], net.fc.out_features
    sys.path.insert(0, str(root))
    if method.folder in ("published", "palm"):
        stub("methods", __path__=[str(root / "methods")])
        stub("models.model", ResNetDomainNet126=type("Unused", (type(net),), {}))
        stub("datasets.data_loading", get_source_loader=source_loader)
        stub("iopath.common.file_io", g_pathmgr=None)
        cfg = importlib.import_module("conf").cfg
        cfg.merge_from_file(str(root / "cfgs/cifar10_c" / f"{'ours' if name == 'palm' else name}.yaml"))
        cfg.TEST.BATCH_SIZE = batch_size
        module = importlib.import_module(f"methods.{method.module}")
        if still:
            module.get_tta_transforms = lambda *_: (lambda x: x.flip(3))
        if method.folder == "palm":
            made = getattr(module, method.module.upper())
        else:
            made = importlib.import_module("utils.registry").ADAPTATION_REGISTRY.get(cfg.MODEL.ADAPTATION)
        return made(cfg=cfg, model=net, num_classes=classes)

    top, settings = ("core", "rotta.yaml") if name == "rotta" else ("src", "petta/cifar10c/petta_cifar10c_default.yaml")
    stub(f"{top}.model", __path__=[str(root / top / "model")])
    cfg = importlib.import_module(f"{top}.configs").cfg
    cfg.merge_from_file(str(root / "configs/adapter" / settings))
    cfg.CORRUPTION.NUM_CLASS, cfg.CKPT_DIR = classes, scratch
    optimizer = importlib.import_module(f"{top}.optim").build_optimizer(cfg)
    module = importlib.import_module(f"{top}.adapter.{name}")
    if still:
        module.get_tta_transforms = lambda _: (lambda x: x.flip(3))
    if name == "rotta":
        return module.RoTTA(cfg, net, optimizer)
    module.split_up_model = lambda net, *_: (lambda x: features(net, x), net.fc)
    module.get_source_loader = source_loader
    return module.PeTTA(cfg, net, optimizer)


def run_published(name: str, root: Path, weights: str, folder: str, batch_size: int, still: bool, device: str, seed: int,
                  tf32: bool):
    """Answers, their confidence, seconds of a batch in the median and number of threads."""
    import numpy as np
    import torch
    prepare(device, seed, tf32)

    def tensor(pixels):  # contiguous N x C x H x W: other strides alone move logits by 1e-4
        return torch.from_numpy(np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))).float().div_(255)

    pixels, labels = np.load(f"{folder}/x.npy"), torch.from_numpy(np.load(f"{folder}/y.npy")).to(device)
    source = tensor(np.load(f"{folder}/source.npy")) if METHODS[name].source else None
    method = build(name, root, load_network(weights).to(device), batch_size, source, still, folder)
    tops, times = [], []
    for i in range(0, len(pixels), batch_size):
        images = tensor(pixels[i:i + batch_size])
        begin = time.perf_counter()
        batch = (images.to(device), labels[i:i + batch_size])
        logits = method(*batch[:2 if name == "petta" else 1])
        tops.append(torch.stack(logits.detach().softmax(1).max(1)).cpu().numpy())  # which waits for a GPU
        times.append(time.perf_counter() - begin)
    seconds = statistics.median(times)
    confidence, answers = np.concatenate(tops, 1)
    return answers.astype(int), confidence, seconds, torch.get_num_threads()


# Our side, and the table.

def run_gala(name: str, args: argparse.Namespace, folder: str, threads: int, seed: int):
    """Answers, their confidence, and seconds of a batch in the median, which --profile tells."""
    method = METHODS[name]
    command = [args.program, "adapt", *(method.ours or ("--method", name)), "--weights", args.weights,
               "--data", f"arrays:images={folder}/x.npy,labels={folder}/y.npy", "--batch-size", str(args.batch_size),
               "--device", args.device, "--precision", args.precision, "--threads", str(threads), "--seed", str(seed),
               "--predictions", f"{folder}/answers.csv", "--profile", "--quiet"]
    command += method.still if args.deterministic_views else ()
    command += ("--source-data", f"arrays:images={folder}/source.npy") if method.source else ()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"{name}: gala failed: {done.stderr.strip() or done.returncode}")
    import numpy as np
    table = np.genfromtxt(f"{folder}/answers.csv", delimiter=",", names=True)
    median = re.search(r"^a batch in the median ([\d.]+) milliseconds", done.stdout, re.MULTILINE)
    seconds = float(median.group(1)) / 1000 if median else fail("gala tells no times with --profile")
    return table["prediction"].astype(int), table["confidence"], seconds


def compare(name: str, root: Path, args: argparse.Namespace, folder: str, labels) -> dict:
    still = args.deterministic_views and bool(METHODS[name].still)
    drawn = METHODS[name].drawn and not still
    runs = []
    for seed in range(1, (args.seeds if drawn else 1) + 1):
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            try:
                theirs, sure, seconds, threads = pool.submit(
                    run_published, name, root, args.weights, folder, args.batch_size, still, args.device, seed,
                    args.precision != "float32").result()
            except Exception as problem:
                fail(f"{name}: the published side failed: {type(problem).__name__}: {str(problem).partition(chr(10))[0]}")
        ours, our_sure, our_seconds = run_gala(name, args, folder, threads, seed)
        if len(ours) != len(labels):
            fail(f"{name}: gala gave {len(ours)} answers to {len(labels)} images")
        runs.append({"seed": seed, "published_error": 100 * float((theirs != labels).mean()),
                     "gala_error": 100 * float((ours != labels).mean()), "differ": int((theirs != ours).sum()),
                     "confidence_gap": float(abs(sure - our_sure).max()),
                     "published_seconds": seconds, "gala_seconds": our_seconds, "threads": threads})
    row = {"method": name, "images": len(labels), "drawn": drawn, "deterministic_views": still}
    for key in ("published_error", "gala_error", "published_seconds", "gala_seconds"):
        row[key] = sum(run[key] for run in runs) / len(runs)
    if not drawn:
        row |= {"differ": runs[0]["differ"], "differ_percent": 100 * runs[0]["differ"] / len(labels),
                "confidence_gap": runs[0]["confidence_gap"], "same": runs[0]["differ"] <= ALLOWED * len(labels)}
    return row | {"runs": runs}


def line(row: dict) -> str:
    if row["drawn"]:
        differ, note = "", f"draws: error only, seeds: {len(row['runs'])}"
    else:
        differ = f"{row['differ']} ({row['differ_percent']:.2f} %)"
        note = ("" if row["same"] else "TOO MANY ") + ("deterministic view" if row["deterministic_views"] else "")
    return (f"{row['method']:<10}{row['images']:>7}{row['published_error']:>11.2f}{row['gala_error']:>8.2f}{differ:>15}"
            f"{1000 * row['published_seconds']:>12.2f}{1000 * row['gala_seconds']:>8.2f}   {note}").rstrip()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for folder in MARKS:
        parser.add_argument(f"--{folder}", metavar="DIR", type=Path)
    for name in ("program", "weights", "images", "labels"):
        parser.add_argument(f"--{name}", metavar="FILE", required=True)
    parser.add_argument("--source-images", metavar="FILE", help=f"clean images for eata and petta, the first {SOURCE_IMAGES}")
    parser.add_argument("--methods", help=f"of {','.join(METHODS)} [all that the given folders and images allow]")
    parser.add_argument("--batch-size", type=int, default=200)
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--precision", choices=("float32", "tf32", "bf16"), default="float32",
                        help="of gala; the published code has TF32 beside both of the others")
    parser.add_argument("--seeds", type=int, default=1, help="runs of a method that draws; errors are their means")
    parser.add_argument("--deterministic-views", action="store_true",
                        help="palm, law, rotta and petta with a flip in place of their augmentation, on both sides")
    parser.add_argument("--out", metavar="FILE", help="the table as JSON")
    return parser.parse_args()


def checked_folders(args: argparse.Namespace) -> dict[str, Path]:
    """The methods to compare and their checkouts."""
    names = args.methods.split(",") if args.methods else [
        name for name, method in METHODS.items()
        if getattr(args, method.folder) and (args.source_images or not method.source)]
    roots = {}
    for name in names or fail("nothing to compare: name a folder, such as --published DIR"):
        method = METHODS.get(name) or fail(f"no method {name}; there are {', '.join(METHODS)}")
        root = getattr(args, method.folder) or fail(f"{name} needs --{method.folder} DIR")
        roots[name] = root / "classification" if (root / "classification").is_dir() else root
        if not (roots[name] / MARKS[method.folder]).is_file():
            fail(f"--{method.folder} {root} holds no {MARKS[method.folder]}")
        if method.source and not args.source_images:
            fail(f"{name} needs --source-images FILE")
    for path in (args.program, args.weights, args.images, args.labels, args.source_images):
        if path and not os.path.isfile(path):
            fail(f"no file {path}")
    return roots


def main() -> int:
    args = parse()
    missing = [name for name in PACKAGES if not importlib.util.find_spec(name)]
    if missing:
        fail(f"packages are missing: {' '.join(missing)}")
    roots = checked_folders(args)
    import numpy as np
    args.program = os.path.abspath(args.program)
    os.environ["TQDM_DISABLE"] = "1"
    if args.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    images, labels = np.load(args.images, mmap_mode="r"), np.load(args.labels).astype(np.int64)
    count = min(len(images) // args.batch_size, args.batches) * args.batch_size
    if images.dtype != np.uint8 or images.shape[1:] != (32, 32, 3) or len(labels) != len(images) or count < 1:
        fail("images must be uint8 N x 32 x 32 x 3, with as many labels and at least one batch")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/x.npy", images[:count])
        np.save(f"{folder}/y.npy", labels[:count])
        if args.source_images:
            np.save(f"{folder}/source.npy", np.load(args.source_images, mmap_mode="r")[:SOURCE_IMAGES])
        print(f"{'':<10}{'':>7}{'error %':>19}{'answers':>15}{'ms a batch':>20}")
        print(f"{'method':<10}{'images':>7}{'published':>11}{'gala':>8}{'that differ':>15}{'published':>12}{'gala':>8}")
        for name, root in roots.items():
            rows.append(compare(name, root, args, folder, labels[:count]))
            print(line(rows[-1]), flush=True)
            if args.out:
                Path(args.out).write_text(json.dumps(rows, indent=1) + "\n")
    print(f"\nA batch in the median, one side after the other ({args.device}, threads: {rows[0]['runs'][0]['threads']}): from the "
          "images in host memory to the answers there; gala's by its --profile.")
    return 0 if all(row.get("same", True) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
