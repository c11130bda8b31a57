#!/usr/bin/env python3
"""Makes a network of PyTorch into a file that gala adapts (`--model exported:path=net.pt2`).

  python tools/export_model.py torchvision:resnet50 net.pt2 --weights pretrained
  python tools/export_model.py timm:vit_base_patch16_224 net.pt2 --weights pretrained
  python tools/export_model.py mynet.py:make net.pt2 --weights mynet.pth --size 32

NETWORK is torchvision:NAME, timm:NAME, or FILE.py:FUNCTION, where the function takes no arguments and
returns a torch.nn.Module that maps images [N, 3, H, W] to logits [N, classes]. --weights is `pretrained`
(what the package downloads), a file that torch.save wrote with a state dict, or `random`, the default; a
function may have loaded its own.

How images are prepared and what the classes are called goes into the file. The packages say it for
pretrained weights; for others give --mean, --std, --size, --interpolation and --classes. The file is
written only when the exported network answers as the network itself does.
"""

import argparse
import importlib.util
import json
import sys
from pathlib import Path

IMAGENET = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225], "size": 224,
            "interpolation": "bilinear", "channels": "rgb"}


def from_torchvision(name, weights):
    from torchvision import models

    chosen = models.get_model_weights(name).DEFAULT if weights == "pretrained" else None
    model = models.get_model(name, weights=chosen)
    if chosen is None:
        return model, dict(IMAGENET), None
    prepare = chosen.transforms()
    found = {"mean": list(prepare.mean), "std": list(prepare.std), "size": prepare.crop_size[0],
             "interpolation": prepare.interpolation.value, "channels": "rgb"}
    return model, found, chosen.meta.get("categories")


def from_timm(name, weights):
    import timm

    model = timm.create_model(name, pretrained=weights == "pretrained")
    config = timm.data.resolve_model_data_config(model)
    found = {"mean": list(config["mean"]), "std": list(config["std"]), "size": config["input_size"][-1],
             "interpolation": config["interpolation"], "channels": "rgb"}
    return model, found, model.pretrained_cfg.get("label_names") if weights == "pretrained" else None


def from_file(path, function):
    spec = importlib.util.spec_from_file_location("network", path)
    if spec is None or not Path(path).is_file():
        sys.exit(f"export_model: {path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(Path(path).resolve().parent))
    spec.loader.exec_module(module)
    if not hasattr(module, function):
        sys.exit(f"export_model: {path} has no function {function}")
    return getattr(module, function)(), dict(IMAGENET), None


def load_network(network, weights):
    import torch

    kind, _, name = network.rpartition(":")
    try:
        if kind == "torchvision":
            model, preprocessing, classes = from_torchvision(name, weights)
        elif kind == "timm":
            model, preprocessing, classes = from_timm(name, weights)
        elif kind.endswith(".py"):
            model, preprocessing, classes = from_file(kind, name)
        else:
            sys.exit(f"export_model: {network} is none of torchvision:NAME, timm:NAME, FILE.py:FUNCTION")
    except ModuleNotFoundError as missing:
        sys.exit(f"export_model: the Python package {missing.name} is not installed")
    if weights not in ("random", "pretrained"):
        state = torch.load(weights, map_location="cpu", weights_only=True)
        model.load_state_dict(state.get("state_dict", state))
    return model, preprocessing, classes


def export(model, size):
    """The exported program, in eval mode and float32, for any number of images."""
    import torch

    model = model.eval().float()
    batch = torch.export.Dim("batch")
    return torch.export.export(model, (torch.randn(2, 3, size, size),), dynamic_shapes=({0: batch},))


def compare(model, program, size):
    """Stops when the exported network does not answer as the network does, on a batch of another size."""
    import torch

    torch.manual_seed(0)
    images = torch.randn(3, 3, size, size)
    with torch.no_grad():
        expected, answered = model(images.clone()), program.module()(images.clone())
    if not torch.allclose(expected, answered, rtol=1e-4, atol=1e-4):
        sys.exit("export_model: the exported network does not answer as the network itself does")


def write(model, path, preprocessing, classes):
    import torch

    program = export(model, preprocessing["size"])
    compare(model, program, preprocessing["size"])
    metadata = {"preprocessing": preprocessing}
    if classes:
        metadata["classes"] = list(classes)
    torch.export.save(program, path, extra_files={"gala.json": json.dumps(metadata)})


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", metavar="NETWORK")
    parser.add_argument("output", metavar="OUT.pt2", type=Path)
    parser.add_argument("--weights", default="random", help="pretrained, random, or a file of torch.save")
    parser.add_argument("--size", type=int, help="height and width of the images")
    parser.add_argument("--mean", type=float, nargs=3, metavar=("R", "G", "B"), help="of values in [0, 1]")
    parser.add_argument("--std", type=float, nargs=3, metavar=("R", "G", "B"), help="of values in [0, 1]")
    parser.add_argument("--interpolation", choices=["nearest", "bilinear", "bicubic"])
    parser.add_argument("--channels", choices=["rgb", "bgr"])
    parser.add_argument("--classes", type=Path, metavar="FILE", help="class names, one a line")
    return parser.parse_args(arguments)


def main():
    flags = parse(sys.argv[1:])
    if flags.output.suffix != ".pt2":
        sys.exit(f"export_model: {flags.output} must end in .pt2")
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError:
        sys.exit("export_model: the Python package torch is not installed")
    model, preprocessing, classes = load_network(flags.network, flags.weights)
    for name in ("size", "mean", "std", "interpolation", "channels"):
        value = getattr(flags, name)
        if value is not None:
            preprocessing[name] = value
    if flags.classes:
        classes = [line.strip() for line in flags.classes.read_text().splitlines() if line.strip()]
    write(model, flags.output, preprocessing, classes)
    print(f"{flags.output}: {sum(p.numel() for p in model.parameters()):,} parameters, "
          f"images of {preprocessing['size']} x {preprocessing['size']}")


if __name__ == "__main__":
    main()
