"""Makes a network of PyTorch into a file that gala adapts (`--model exported:path=net.pt2`).

  python -m gala_tta export torchvision:resnet50 net.pt2 --weights pretrained
  python -m gala_tta export timm:vit_base_patch16_224 net.pt2 --weights pretrained
  python -m gala_tta export mynet.py:make net.pt2 --weights mynet.pth --size 32

NETWORK is torchvision:NAME, timm:NAME, or FILE.py:FUNCTION, where the function takes no arguments
and returns a torch.nn.Module that maps images [N, 3, H, W] to logits [N, classes]. --weights is
`pretrained` (what the package downloads), a file that torch.save wrote with a state dict, or
`random`, the default; a function may have loaded its own.

How images are prepared and what the classes are called goes into the file. The packages say it for
pretrained weights; for others give --mean, --std, --size, --interpolation and --classes. The file
is written only when the exported network answers as the network itself does.
"""

# tools/export_model.py runs this file from a plain checkout: it imports nothing of the package, and
# PyTorch only where it is needed.
from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import math
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import torch

__all__ = ["export", "load_network", "main", "write"]

IMAGENET: dict[str, Any] = {
    "mean": [0.485, 0.456, 0.406],
    "std": [0.229, 0.224, 0.225],
    "size": 224,
    "interpolation": "bilinear",
    "channels": "rgb",
}

#: A network, how its images are prepared, and the names of its classes where they are known.
Network = tuple["torch.nn.Module", dict[str, Any], "list[str] | None"]


def _stop(words: str) -> NoReturn:
    """End the program: something that was given is wrong."""
    print(f"export_model: {words}", file=sys.stderr)
    raise SystemExit(2)


def _in_brief(problem: BaseException) -> str:
    """Return the kind of an exception and the first line of its text."""
    lines = str(problem).strip().splitlines()
    return f"{type(problem).__name__}: {lines[0]}" if lines else type(problem).__name__


def _from_torchvision(name: str, weights: str) -> Network:
    models = importlib.import_module("torchvision.models")
    chosen = models.get_model_weights(name).DEFAULT if weights == "pretrained" else None
    model = models.get_model(name, weights=chosen)
    if chosen is None:
        return model, dict(IMAGENET), None
    prepare = chosen.transforms()
    found = {
        "mean": list(prepare.mean),
        "std": list(prepare.std),
        "size": prepare.crop_size[0],
        "interpolation": prepare.interpolation.value,
        "channels": "rgb",
    }
    return model, found, chosen.meta.get("categories")


def _from_timm(name: str, weights: str) -> Network:
    timm = importlib.import_module("timm")
    model = timm.create_model(name, pretrained=weights == "pretrained")
    config = timm.data.resolve_model_data_config(model)
    found = {
        "mean": list(config["mean"]),
        "std": list(config["std"]),
        "size": config["input_size"][-1],
        "interpolation": config["interpolation"],
        "channels": "rgb",
    }
    names = model.pretrained_cfg.get("label_names") if weights == "pretrained" else None
    return model, found, names


def _from_file(path: str, function: str) -> Network:
    spec = importlib.util.spec_from_file_location("network", path)
    if spec is None or spec.loader is None or not Path(path).is_file():
        _stop(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(Path(path).resolve().parent))
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError:
        raise
    except Exception as problem:
        _stop(f"{path} cannot be imported: {_in_brief(problem)}{_place(problem, path)}")
    if not callable(getattr(module, function, None)):
        _stop(f"{path} has no function {function}")
    try:
        model = getattr(module, function)()
    except Exception as problem:
        _stop(f"{path}:{function}: {_in_brief(problem)}{_place(problem, path)}")
    return model, dict(IMAGENET), None


def _place(problem: BaseException, path: str) -> str:
    """Return where in a file something went wrong, in brackets."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(problem.__traceback__)
        if Path(frame.filename).resolve() == Path(path).resolve()
    ]
    return f" (line {lines[-1]})" if lines else ""


def _load_weights(model: torch.nn.Module, path: str) -> None:
    import torch

    if not Path(path).is_file():
        _stop(f"--weights {path} is no file, and neither random nor pretrained")
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        model.load_state_dict(state.get("state_dict", state))
    except (AttributeError, EOFError, RuntimeError, TypeError, UnpicklingError) as problem:
        _stop(f"{path} holds no state dict of this network: {problem}")


def load_network(network: str, weights: str) -> Network:
    """The network that a name stands for, with its preparation and class names.

    Ends the program with a sentence where the name or a package is missing.
    """
    import torch

    kind, _, name = network.rpartition(":")
    try:
        if kind == "torchvision":
            model, preprocessing, classes = _from_torchvision(name, weights)
        elif kind == "timm":
            model, preprocessing, classes = _from_timm(name, weights)
        elif kind.endswith(".py"):
            model, preprocessing, classes = _from_file(kind, name)
        else:
            _stop(f"{network} is none of torchvision:NAME, timm:NAME, FILE.py:FUNCTION")
    except ModuleNotFoundError as missing:
        _stop(f"the Python package {missing.name} is not installed")
    except (RuntimeError, ValueError) as problem:
        if kind not in ("torchvision", "timm"):
            raise
        if "torchvision::" in str(problem):
            _stop(
                f"this torchvision is for another build of torch than "
                f"{torch.__version__} ({problem}): install the one that fits"
            )
        _stop(f"{network}: {problem}")
    if not isinstance(model, torch.nn.Module):
        _stop(f"{network} returned no torch.nn.Module but {type(model).__name__}")
    if weights not in ("random", "pretrained"):
        _load_weights(model, weights)
    return model, preprocessing, classes


def export(model: torch.nn.Module, size: int) -> torch.export.ExportedProgram:
    """The exported program, in eval mode and float32, for any number of images."""
    import torch

    model = model.eval().float()
    batch = torch.export.Dim("batch")
    images = torch.randn(2, 3, size, size)
    return torch.export.export(model, (images,), dynamic_shapes=({0: batch},))


def _compare(
    model: torch.nn.Module,
    program: torch.export.ExportedProgram,
    size: int,
    classes: Sequence[str] | None,
) -> None:
    """Stops where the network gives no logits, or the exported one others on another batch size."""
    import torch

    torch.manual_seed(0)
    images = torch.randn(3, 3, size, size)
    with torch.no_grad():
        expected, answered = model(images.clone()), program.module()(images.clone())
    if not isinstance(expected, torch.Tensor) or expected.dim() != 2 or expected.shape[0] != 3:
        what = (
            list(expected.shape) if isinstance(expected, torch.Tensor) else type(expected).__name__
        )
        _stop(f"the network must map 3 images to logits [3, classes], and gives {what}")
    if classes is not None and len(classes) != expected.shape[1]:
        _stop(f"there are {len(classes)} names of classes, and the network has {expected.shape[1]}")
    if not torch.allclose(expected, answered, rtol=1e-4, atol=1e-4):
        _stop("the exported network does not answer as the network itself does")


def write(
    model: torch.nn.Module,
    path: str | Path,
    preprocessing: dict[str, Any],
    classes: Sequence[str] | None = None,
) -> None:
    """Exports a network to a file, when the export answers as the network does."""
    import torch

    try:
        program = export(model, preprocessing["size"])
    except Exception as problem:
        _stop(f"PyTorch cannot export this network: {_in_brief(problem)}")
    _compare(model, program, preprocessing["size"], classes)
    metadata: dict[str, Any] = {"preprocessing": preprocessing}
    if classes:
        metadata["classes"] = list(classes)
    torch.export.save(program, path, extra_files={"gala.json": json.dumps(metadata)})


def _parse(arguments: Sequence[str], program: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=program, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("network", metavar="NETWORK")
    add("output", metavar="OUT.pt2", type=Path)
    add("--weights", default="random", help="pretrained, random, or a file of torch.save")
    add("--size", type=int, help="height and width of the images")
    for flag in ("--mean", "--std"):
        add(flag, type=float, nargs=3, metavar=("R", "G", "B"), help="of values in [0, 1]")
    add("--interpolation", choices=["nearest", "bilinear", "bicubic"])
    add("--channels", choices=["rgb", "bgr"])
    add("--classes", type=Path, metavar="FILE", help="class names, one a line")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None, program: str | None = None) -> None:
    """The command line: without arguments those of the process."""
    flags = _parse(sys.argv[1:] if arguments is None else arguments, program)
    if flags.output.suffix != ".pt2":
        _stop(f"{flags.output} must end in .pt2")
    if not flags.output.absolute().parent.is_dir():
        _stop(f"there is no folder {flags.output.parent}")
    if flags.size is not None and flags.size < 1:
        _stop(f"--size must be at least 1, not {flags.size}")
    if flags.std and not all(0 < each < math.inf for each in flags.std):
        _stop(f"--std must be numbers greater than 0, not {flags.std}")
    if flags.mean and not all(math.isfinite(each) for each in flags.mean):
        _stop(f"--mean must be finite numbers, not {flags.mean}")
    if flags.classes and not flags.classes.is_file():
        _stop(f"--classes {flags.classes} is no file")
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError:
        _stop("the Python package torch is not installed")
    model, preprocessing, classes = load_network(flags.network, flags.weights)
    for name in ("size", "mean", "std", "interpolation", "channels"):
        value = getattr(flags, name)
        if value is not None:
            preprocessing[name] = value
    if flags.classes:
        lines = flags.classes.read_text(encoding="utf-8").splitlines()
        classes = [line.strip() for line in lines if line.strip()]
    write(model, flags.output, preprocessing, classes)
    size = preprocessing["size"]
    count = sum(parameter.numel() for parameter in model.parameters())
    print(f"{flags.output}: {count:,} parameters, images of {size} x {size}")
