"""Writes what the tests of exported networks compare with: python make_exported_fixtures.py FOLDER

The networks of exported_networks.py, in FOLDER/<name>/: net.pt2, which
torch.export.save wrote; values.pt, images with the logits and all gradients that PyTorch gives for them;
steps.json, what 30 steps of GALA choose on them, by a plain implementation that shares nothing with the
library. FOLDER/bad/ has files that must be refused. Where GALA_TEST_PACKAGES is set, FOLDER/packages/ has
networks of torchvision and timm, with random weights, as far as these packages are installed.
"""

import importlib.util
import json
import os
import shutil
import sys
import warnings
from pathlib import Path

import torch
from torch import nn

import export_model
from exported_networks import CLASSES, NETWORKS, HalfWeights, NotTensors, make

SIZE = 32


def export(model, size=SIZE, batch=None):
    shapes = ({0: torch.export.Dim("batch")},) if batch is None else None
    return torch.export.export(model, (torch.randn(batch or 2, 3, size, size),), dynamic_shapes=shapes)


def use_batch_statistics(model):
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.running_mean = module.running_var = None


def entropy(logits):
    log_p = logits.log_softmax(1)
    return -(log_p.exp() * log_p).sum(1).mean()


def images_of(step, count):
    generator = torch.Generator().manual_seed(1000 + step)
    noise = torch.randn(count, 3, SIZE, SIZE, generator=generator)
    return noise + torch.linspace(-1, 1, SIZE).view(1, 1, 1, SIZE) * (1 + step % 3)


def gala_steps(model, steps=30, window=10, rate=0.02, threshold=0.75):
    """GALA with plain gradient descent and a whole opening step; layers are modules."""
    parameters = {name: p for name, p in model.named_parameters() if not name.startswith("unused")}
    layers = {}
    for name in parameters:
        layers.setdefault(name.rpartition(".")[0] or name, []).append(name)
    rows = []
    for step in range(steps):
        if step % window == 0:
            moved = {name: torch.zeros_like(p, dtype=torch.float64) for name, p in parameters.items()}
        model.zero_grad()
        loss = entropy(model(images_of(step, 4).clone()))
        loss.backward()
        update = {name: -rate * p.grad for name, p in parameters.items()}
        cosines = {}
        for layer, names in layers.items():
            u = torch.cat([update[n].double().flatten() for n in names])
            there = u + torch.cat([moved[n].flatten() for n in names])
            cosines[layer] = float(u @ there / (u.norm() * there.norm()))
        best, second = sorted(cosines, key=cosines.get, reverse=True)[:2]
        opening = step % window == 0
        chosen = best if cosines[best] > threshold else None
        for layer, names in layers.items():
            if opening or layer == chosen:
                for n in names:
                    parameters[n].data += update[n]
                    moved[n] += update[n].double()
        rows.append({"loss": float(loss.detach()), "opening": opening, "chosen": chosen,
                     "gap": cosines[best] - cosines[second], "margin": abs(cosines[best] - threshold)})
    return rows, parameters


def write_case(folder, name):
    folder.mkdir(parents=True, exist_ok=True)
    model = make(name)
    metadata = {"preprocessing": {"mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25], "size": SIZE,
                                  "interpolation": "bicubic", "channels": "rgb"},
                "classes": [f"class {i}" for i in range(CLASSES)]}
    torch.export.save(export(model), folder / "net.pt2", extra_files={"gala.json": json.dumps(metadata)})
    values = {"images": images_of(0, 6)}
    for mode in ("source", "batch"):
        if mode == "batch":
            use_batch_statistics(model)
        model.zero_grad()
        logits = model(values["images"].clone())
        entropy(logits).backward()
        values[f"{mode}.logits"] = logits.detach().clone()
        for parameter, tensor in model.named_parameters():
            if tensor.grad is not None:
                values[f"{mode}.gradient.{parameter}"] = tensor.grad.clone()
    rows, parameters = gala_steps(model)
    for parameter, tensor in parameters.items():
        values[f"after.{parameter}"] = tensor.detach().clone()
    for step in range(30):
        values[f"step{step}.images"] = images_of(step, 4)
    torch.save(values, folder / "values.pt")
    (folder / "steps.json").write_text(json.dumps(rows))


def write_bad(folder):
    """Files that were written by torch and must be refused."""
    folder.mkdir(parents=True, exist_ok=True)
    model = make("resnet")
    torch.export.save(export(model, batch=2), folder / "fixed_batch.pt2")
    torch.export.save(export(model).run_decompositions(), folder / "decomposed.pt2")
    torch.export.save(export(make("vit")).run_decompositions(), folder / "decomposed_vit.pt2")
    torch.export.save(export(make("resnet").train()), folder / "training.pt2")
    torch.export.save(export(make("vit").train()), folder / "dropout.pt2")
    torch.export.save(export(HalfWeights()), folder / "half.pt2")
    torch.export.save(export(NotTensors()), folder / "no_linear.pt2")
    torch.save(model.state_dict(), folder / "checkpoint.pt2")
    small = torch.export.Dim("batch", max=4)
    torch.export.save(torch.export.export(model, (torch.randn(2, 3, SIZE, SIZE),), dynamic_shapes=({0: small},)),
                      folder / "at_most_four.pt2")


PACKAGES = ["torchvision:resnet50", "torchvision:mobilenet_v3_large", "torchvision:convnext_tiny",
            "torchvision:vit_b_16", "timm:resnet50", "timm:mobilenetv3_large_100", "timm:convnext_tiny",
            "timm:vit_base_patch16_224"]


def wake(model):
    """Some networks begin with layers at zero, behind which nothing can be seen."""
    nn.init.normal_([m for m in model.modules() if isinstance(m, nn.Linear)][-1].weight, 0, 0.1)
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            module.momentum = None
    with torch.no_grad():
        model.train()(torch.randn(8, 3, 224, 224))  # statistics of its own
    model.eval()


def write_package(folder, network):
    """A network of a package through tools/export_model.py; of each gradient 64 values and the norm."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(3)
    model, preprocessing, classes = export_model.load_network(network, "random")
    wake(model)
    export_model.write(model, folder / "net.pt2", preprocessing, classes)
    images = torch.randn(2, 3, preprocessing["size"], preprocessing["size"])
    logits = model(images)
    direction = torch.randn_like(logits)
    (logits * direction).sum().backward()
    values = {"images": images, "logits": logits.detach().clone(), "direction": direction}
    for name, parameter in model.named_parameters():
        flat = parameter.grad.flatten()
        values[f"gradient.{name}"] = flat[:: max(1, flat.numel() // 64)].clone()
        values[f"norm.{name}"] = flat.norm().reshape(1).clone()
    torch.save(values, folder / "values.pt")


def main():
    warnings.simplefilter("ignore")
    folder = Path(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)
    for name in NETWORKS:
        write_case(folder / name, name)
    write_bad(folder / "bad")
    for network in PACKAGES if os.environ.get("GALA_TEST_PACKAGES") else []:
        package = network.partition(":")[0]
        if importlib.util.find_spec(package):
            write_package(folder / "packages" / network.replace(":", "_"), network)
    (folder / "cases.json").write_text(json.dumps(list(NETWORKS)))


if __name__ == "__main__":
    main()
