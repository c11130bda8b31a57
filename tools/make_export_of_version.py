"""Writes a network as the torch that runs this exports it: python make_export_of_version.py FOLDER

FOLDER/torch_<major>_<minor>/ gets net.pt2 and values.pt: images, PyTorch's logits and all gradients. The folders in
tests/model/fixtures/exported are kept, so that files of other versions than the one at hand are read, too.
"""

import sys
import warnings
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

from exported_networks import CLASSES, SqueezeExcite, ViTBlock
from make_exported_fixtures import entropy

SIZE = 16


class Mixed(nn.Module):
    """A little of each family: pooling, a shortcut, squeeze-and-excite, attention."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 8, 3, 1, 1, groups=2)
        self.bn2 = nn.BatchNorm2d(8)
        self.excite = SqueezeExcite(8, nn.ReLU, nn.Hardsigmoid)
        self.block = ViTBlock(8, 2)
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x)), inplace=True), 3, 2, 1)
        y = self.bn2(self.conv2(x))
        y += x
        x = F.hardswish(self.excite(F.relu(y, inplace=True)))
        return self.head(self.norm(self.block(x.flatten(2).transpose(1, 2))).mean(1))


def make():
    torch.manual_seed(11)
    model = Mixed()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.3)
            module.running_var.uniform_(0.5, 2)
            nn.init.uniform_(module.weight, 0.5, 1.5)
    nn.init.normal_(model.head.weight, 0, 0.6)
    return model.eval()


def main():
    warnings.simplefilter("ignore")
    major, minor = torch.__version__.split(".")[:2]
    folder = Path(sys.argv[1]) / f"torch_{major}_{minor}"
    folder.mkdir(parents=True, exist_ok=True)
    model = make()
    program = torch.export.export(model, (torch.randn(2, 3, SIZE, SIZE),),
                                  dynamic_shapes=({0: torch.export.Dim("batch")},))
    for node in program.graph.nodes:  # they are long, and name the machine
        node.meta.pop("stack_trace", None)
    program.example_inputs = None
    torch.export.save(program, folder / "net.pt2")
    values = {"images": torch.randn(3, 3, SIZE, SIZE)}
    logits = model(values["images"])
    entropy(logits).backward()
    values["logits"] = logits.detach().clone()
    for name, parameter in model.named_parameters():
        values[f"gradient.{name}"] = parameter.grad.clone()
    torch.save(values, folder / "values.pt")


if __name__ == "__main__":
    main()
