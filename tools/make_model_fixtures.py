"""Writes what the model tests compare with: python make_model_fixtures.py FOLDER

The networks are written here with torch.nn, apart from the C++ ones. Weights and inputs are not
stored: both sides compute them from the same integer formula (`pattern`), so that a case takes a few
hundred kilobytes. A case is FOLDER/<name>/index.json and FOLDER/<name>/data.bin (raw little-endian
float32); index.json says where in data.bin each expected tensor lies. Everything is computed in double
precision: in single precision a few relus near zero change sides with the order of a sum, and with
them percents of a gradient.
"""

import json
import math
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

SAMPLES = 2048  # of each gradient


def pattern(count, seed):
    """`count` numbers in [-1, 1), from a 32-bit integer hash of place and seed."""
    x = np.arange(count, dtype=np.uint32) * np.uint32(2654435761) + np.uint32(seed * 40503 + 12345)
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x85EBCA6B)
    x ^= x >> np.uint32(13)
    x *= np.uint32(0xC2B2AE35)
    x ^= x >> np.uint32(16)
    return (x >> np.uint32(8)).astype(np.float64) / 2.0**23 - 1.0


def fill(shape, seed, offset, scale):
    values = offset + scale * pattern(math.prod(shape), seed)
    return torch.from_numpy(values.astype(np.float32)).double().reshape(shape)


class Norm(nn.Module):
    """Batch normalisation in every mode, by its formula."""

    def __init__(self, channels, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))
        self.eps = eps
        self.mode = ("source", None)

    def forward(self, x):
        kind, number = self.mode
        if kind == "training":
            return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias,
                                True, number, self.eps)
        mean = x.mean(dim=(0, 2, 3))
        var = ((x - mean[None, :, None, None]) ** 2).mean(dim=(0, 2, 3))
        if kind == "source":
            mean, var = self.running_mean, self.running_var
        elif kind == "blend":
            mean = number * mean + (1 - number) * self.running_mean
            var = number * var + (1 - number) * self.running_var
        elif kind == "running":
            count = x.numel() / x.shape[1]
            with torch.no_grad():
                unbiased = var * count / (count - 1)
                self.running_mean.copy_((1 - number) * self.running_mean + number * mean)
                self.running_var.copy_((1 - number) * self.running_var + number * unbiased)
            mean, var = self.running_mean, self.running_var
        else:
            assert kind == "batch"
        normal = (x - mean[None, :, None, None]) / torch.sqrt(var + self.eps)[None, :, None, None]
        return normal * self.weight[None, :, None, None] + self.bias[None, :, None, None]


def conv(inside, outside, kernel, stride=1, groups=1):
    return nn.Conv2d(inside, outside, kernel, stride, (kernel - 1) // 2, groups=groups, bias=False)


class Basic(nn.Module):
    def __init__(self, inside, width, stride, eps):
        super().__init__()
        self.conv1, self.bn1 = conv(inside, width, 3, stride), Norm(width, eps)
        self.conv2, self.bn2 = conv(width, width, 3), Norm(width, eps)
        self.downsample = None
        if stride > 1 or inside != width:
            self.downsample = nn.Sequential(conv(inside, width, 1, stride), Norm(width, eps))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class Bottleneck(nn.Module):
    def __init__(self, inside, width, stride, eps, stride_first):
        super().__init__()
        strides = (stride, 1) if stride_first else (1, stride)
        self.conv1, self.bn1 = conv(inside, width, 1, strides[0]), Norm(width, eps)
        self.conv2, self.bn2 = conv(width, width, 3, strides[1]), Norm(width, eps)
        self.conv3, self.bn3 = conv(width, width * 4, 1), Norm(width * 4, eps)
        self.downsample = None
        if stride > 1 or inside != width * 4:
            self.downsample = nn.Sequential(conv(inside, width * 4, 1, stride), Norm(width * 4, eps))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self, depth, classes=1000, stride_first=False, eps=1e-5):
        super().__init__()
        self.conv1, self.bn1 = conv(3, 64, 7, 2), Norm(64, eps)
        counts = {18: [2, 2, 2, 2], 34: [3, 4, 6, 3], 50: [3, 4, 6, 3]}[depth]
        inside = 64
        for stage, count in enumerate(counts):
            width, blocks = 64 * 2**stage, []
            for i in range(count):
                stride = 2 if stage and not i else 1
                if depth < 50:
                    blocks.append(Basic(inside, width, stride, eps))
                    inside = width
                else:
                    blocks.append(Bottleneck(inside, width, stride, eps, stride_first))
                    inside = width * 4
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(inside, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        features = F.adaptive_avg_pool2d(x, 1).flatten(1)
        return features, self.fc(features)


class WideBlock(nn.Module):
    def __init__(self, inside, outside, stride, eps):
        super().__init__()
        self.bn1, self.conv1 = Norm(inside, eps), conv(inside, outside, 3, stride)
        self.bn2, self.conv2 = Norm(outside, eps), conv(outside, outside, 3)
        if inside != outside:
            self.convShortcut = conv(inside, outside, 1, stride)

    def forward(self, x):
        active = F.relu(self.bn1(x))
        branch = self.conv2(F.relu(self.bn2(self.conv1(active))))
        return branch + (self.convShortcut(active) if hasattr(self, "convShortcut") else x)


class WideStage(nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.layer = nn.Sequential(*blocks)

    def forward(self, x):
        return self.layer(x)


class WideResNet(nn.Module):
    def __init__(self, depth, width, classes=10, eps=1e-5):
        super().__init__()
        self.conv1 = conv(3, 16, 3)
        inside = 16
        for stage in range(3):
            blocks = []
            for i in range((depth - 4) // 6):
                blocks.append(WideBlock(inside, 16 * 2**stage * width, 2 if stage and not i else 1, eps))
                inside = 16 * 2**stage * width
            setattr(self, f"block{stage + 1}", WideStage(blocks))
        self.bn1 = Norm(inside, eps)
        self.fc = nn.Linear(inside, classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.block3(self.block2(self.block1(self.conv1(x))))))
        features = F.avg_pool2d(x, x.shape[2:]).flatten(1)
        return features, self.fc(features)


class NextBlock(nn.Module):
    def __init__(self, inside, planes, cardinality, base_width, stride, eps):
        super().__init__()
        width = math.floor(planes * base_width / 64) * cardinality
        self.conv_reduce, self.bn_reduce = conv(inside, width, 1), Norm(width, eps)
        self.conv_conv, self.bn = conv(width, width, 3, stride, cardinality), Norm(width, eps)
        self.conv_expand, self.bn_expand = conv(width, planes * 4, 1), Norm(planes * 4, eps)
        self.downsample = None
        if stride > 1 or inside != planes * 4:
            self.downsample = nn.Sequential(conv(inside, planes * 4, 1, stride), Norm(planes * 4, eps))

    def forward(self, x):
        y = F.relu(self.bn_reduce(self.conv_reduce(x)))
        y = F.relu(self.bn(self.conv_conv(y)))
        y = self.bn_expand(self.conv_expand(y))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNext29(nn.Module):
    def __init__(self, cardinality=4, base_width=32, classes=100, eps=1e-5):
        super().__init__()
        self.conv_1_3x3, self.bn_1 = conv(3, 64, 3), Norm(64, eps)
        inside = 64
        for stage, planes in enumerate((64, 128, 256)):
            blocks = []
            for i in range(3):
                stride = 2 if stage and not i else 1
                blocks.append(NextBlock(inside, planes, cardinality, base_width, stride, eps))
                inside = planes * 4
            setattr(self, f"stage_{stage + 1}", nn.Sequential(*blocks))
        self.classifier = nn.Linear(inside, classes)

    def forward(self, x):
        x = F.relu(self.bn_1(self.conv_1_3x3(x)))
        x = self.stage_3(self.stage_2(self.stage_1(x)))
        features = F.avg_pool2d(x, x.shape[2:]).flatten(1)
        return features, self.classifier(features)


def value_range(name, tensor):
    """Offset and scale of a tensor's pattern: activations keep their size, statistics are odd."""
    if name.endswith("running_var"):
        return 1.0, 0.5
    if name.endswith("running_mean"):
        return 0.0, 0.2
    if tensor.dim() == 1:
        return (0.8, 0.3) if name.endswith("weight") else (0.0, 0.2)
    fan_in = tensor[0].numel()
    return 0.0, math.sqrt((6.0 if tensor.dim() == 4 else 3.0) / fan_in)


class Case:
    """One network in one norm mode, run forward and backward once."""

    def __init__(self, spec, norm, network, shape):
        kind, _, option = norm.partition(":")
        number = float(option.partition("=")[2]) if option else None
        for module in network.modules():
            if isinstance(module, Norm):
                module.mode = (kind, number)
        self.pieces, self.length = [], 0
        self.index = {"spec": spec, "norm": norm, "images": {"shape": list(shape), "seed": 7}}
        self.index["parameters"] = self.fill_all(network.named_parameters(), 1000)
        self.index["buffers"] = self.fill_all(network.named_buffers(), 5000)
        features, logits = network(fill(shape, 7, 0.0, 1.7))
        labels = torch.arange(shape[0]) % logits.shape[1]
        (F.cross_entropy(logits, labels) + 0.1 * features.square().mean()).backward()
        self.index["features"], self.index["logits"] = self.store(features), self.store(logits)
        for entry, parameter in zip(self.index["parameters"], network.parameters()):
            gradient = parameter.grad.flatten()
            entry["gradient_norm"] = gradient.double().norm().item()
            entry["gradient_step"] = max(1, gradient.numel() // SAMPLES)
            entry["gradient"] = self.store(gradient[:: entry["gradient_step"]])
        for entry, buffer in zip(self.index["buffers"], network.buffers()):
            entry["after"] = self.store(buffer)

    def fill_all(self, named, first_seed):
        entries = []
        for seed, (name, tensor) in enumerate(named, first_seed):
            offset, scale = value_range(name, tensor)
            with torch.no_grad():
                tensor.copy_(fill(tensor.shape, seed, offset, scale))
            entries.append({"name": name, "shape": list(tensor.shape), "seed": seed,
                            "offset": offset, "scale": scale})
        return entries

    def store(self, tensor):
        data = tensor.detach().float().contiguous().numpy()
        assert np.isfinite(data).all()
        self.pieces.append(data.astype("<f4").tobytes())
        place = {"shape": list(tensor.shape), "begin": self.length, "count": data.size}
        self.length += data.size
        return place

    def write(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "data.bin").write_bytes(b"".join(self.pieces))
        (folder / "index.json").write_text(json.dumps(self.index))


NETWORKS = {
    "resnet18": ("resnet18:classes=7", lambda: ResNet(18, 7), (3, 3, 64, 64)),
    "resnet34": ("resnet34:norm_epsilon=0.001", lambda: ResNet(34, eps=1e-3), (2, 3, 64, 64)),
    "resnet50": ("resnet50", lambda: ResNet(50), (3, 3, 64, 64)),
    "resnet50_first": ("resnet50:stride=first,norm_epsilon=0.001,classes=5",
                       lambda: ResNet(50, 5, True, 1e-3), (3, 3, 64, 64)),
    "resnet50_odd": ("resnet50:classes=3", lambda: ResNet(50, 3), (2, 3, 75, 61)),
    "wide_10_1": ("wide_resnet:depth=10,width=1", lambda: WideResNet(10, 1), (4, 3, 32, 32)),
    "wide_16_2": ("wide_resnet:depth=16,width=2,classes=4",
                  lambda: WideResNet(16, 2, 4), (3, 3, 32, 32)),
    "wide_odd": ("wide_resnet:depth=10,width=2", lambda: WideResNet(10, 2), (2, 3, 37, 29)),
    "resnext29": ("resnext29", lambda: ResNext29(), (3, 3, 32, 32)),
    "resnext29_small": ("resnext29:cardinality=2,base_width=24,classes=6",
                        lambda: ResNext29(2, 24, 6), (2, 3, 33, 32)),
}
OTHER_MODES = ["blend:weight=0.3", "running:momentum=0.2", "training:momentum=0.1"]


def main():
    folder = Path(sys.argv[1])
    torch.set_default_dtype(torch.float64)
    cases = [(name, mode) for name in NETWORKS for mode in ("source", "batch")]
    cases += [(name, mode) for name in ("resnet18", "wide_16_2", "resnext29_small")
              for mode in OTHER_MODES]
    names = []
    for name, mode in cases:
        spec, make, shape = NETWORKS[name]
        case_name = f"{name}_{mode.partition(':')[0]}"
        Case(spec, mode, make(), shape).write(folder / case_name)
        names.append(case_name)
    (folder / "cases.json").write_text(json.dumps(names))


if __name__ == "__main__":
    main()
