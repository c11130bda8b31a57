"""The network of the demo in PyTorch, with its weights and some noisy images."""

from __future__ import annotations

import pathlib

import numpy as np
import torch
from PIL import Image
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

ASSETS = pathlib.Path(__file__).parents[2] / "assets"


class Block(nn.Module):
    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(before)
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        if before != after:
            self.convShortcut = nn.Conv2d(before, after, 1, stride, bias=False)

    def forward(self, maps: Tensor) -> Tensor:
        active = functional.relu(self.bn1(maps))
        result = self.conv2(functional.relu(self.bn2(self.conv1(active))))
        return result + (self.convShortcut(active) if hasattr(self, "convShortcut") else maps)


class Stage(nn.Module):
    def __init__(self, blocks: list[Block]) -> None:
        super().__init__()
        self.layer = nn.Sequential(*blocks)

    def forward(self, maps: Tensor) -> Tensor:
        return self.layer(maps)


class WideResNet(nn.Module):
    """WideResNet-16-2, its modules in the order in which they run."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.block1 = Stage([Block(16, 32, 1), Block(32, 32, 1)])
        self.block2 = Stage([Block(32, 64, 2), Block(64, 64, 1)])
        self.block3 = Stage([Block(64, 128, 2), Block(128, 128, 1)])
        self.bn1 = nn.BatchNorm2d(128)
        self.fc = nn.Linear(128, 10)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.block3(self.block2(self.block1(self.conv1(images))))
        return self.fc(functional.relu(self.bn1(maps)).mean((2, 3)))


def source_model() -> WideResNet:
    """Return the source model of the demo."""
    model = WideResNet()
    weights = load_file(ASSETS / "wrn16_2_cifar10.safetensors")
    missing, extra = model.load_state_dict(
        {name: value.float() for name, value in weights.items()}, strict=False
    )
    assert all(name.endswith("num_batches_tracked") for name in missing)
    assert not extra
    return model.eval()


def noisy_images(count: int) -> np.ndarray:
    """Return images [N, 32, 32, 3] in bytes, with noise on them."""
    rows = np.asarray(Image.open(ASSETS / "cifar10_test_2000.png"))[:count]
    noise = np.random.default_rng(0).normal(0, 25, rows.shape)
    return np.clip(rows + noise, 0, 255).astype(np.uint8).reshape(count, 32, 32, 3)


def as_input(images: np.ndarray) -> Tensor:
    """Return them as the network takes them."""
    return torch.from_numpy(images.copy()).permute(0, 3, 1, 2).float().div(255).contiguous()
