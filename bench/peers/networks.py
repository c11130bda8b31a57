"""The networks of the speed tests, as a PyTorch user would write them; names as in weight files."""
import torch
from torch import nn
from torch.nn import functional as F


class Basic(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = None
        if stride != 1 or channels != width:
            self.downsample = nn.Sequential(
                nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)
        return F.relu(self.bn2(self.conv2(x)) + shortcut, inplace=True)


class Bottleneck(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.downsample = None
        if stride != 1 or channels != 4 * width:
            self.downsample = nn.Sequential(
                nn.Conv2d(channels, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)
        x = F.relu(self.bn2(self.conv2(x)), inplace=True)
        return F.relu(self.bn3(self.conv3(x)) + shortcut, inplace=True)


class ResNet(nn.Module):
    def __init__(self, block, counts, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        channels = 64
        for stage, count in enumerate(counts):
            blocks = []
            for i in range(count):
                blocks.append(block(channels, 64 << stage, 2 if stage > 0 and i == 0 else 1))
                channels = (64 << stage) * (4 if block is Bottleneck else 1)
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(channels, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x)), inplace=True), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


class WideBlock(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.convShortcut = None
        if channels != width:
            self.convShortcut = nn.Conv2d(channels, width, 1, stride, bias=False)

    def forward(self, x):
        active = F.relu(self.bn1(x), inplace=True)
        shortcut = x if self.convShortcut is None else self.convShortcut(active)
        return self.conv2(F.relu(self.bn2(self.conv1(active)), inplace=True)) + shortcut


class WideResNet(nn.Module):
    def __init__(self, depth, width, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        channels = 16
        for stage in range(3):
            out = (16 << stage) * width
            blocks = []
            for i in range((depth - 4) // 6):
                blocks.append(WideBlock(channels, out, 2 if stage > 0 and i == 0 else 1))
                channels = out
            holder = nn.Module()
            holder.layer = nn.Sequential(*blocks)
            setattr(self, f"block{stage + 1}", holder)
        self.bn1 = nn.BatchNorm2d(channels)
        self.fc = nn.Linear(channels, classes)

    def forward(self, x):
        x = self.conv1(x)
        for block in (self.block1, self.block2, self.block3):
            x = block.layer(x)
        return self.fc(F.relu(self.bn1(x), inplace=True).mean((2, 3)))


def make(name):
    if name == "resnet18":
        return ResNet(Basic, (2, 2, 2, 2), 7)
    if name == "resnet50":
        return ResNet(Bottleneck, (3, 4, 6, 3), 7)
    if name == "wrn28_10":
        return WideResNet(28, 10, 10)
    raise ValueError(name)


def resnet18():
    """For tools/export_model.py."""
    return make("resnet18")


def use_batch_statistics(model):
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.track_running_stats = False
            module.running_mean = module.running_var = None


def layers_of(model):
    """Parameters grouped by module, in forward order of definition."""
    groups = {}
    for name, parameter in model.named_parameters():
        groups.setdefault(name.rsplit(".", 1)[0], []).append(parameter)
    return groups
