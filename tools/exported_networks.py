"""Small networks of the usual families, for the tests of exported ones: torch.nn alone, random weights."""

import torch
from torch import nn
from torch.nn import functional as F

CLASSES = 7


def conv_norm(cin, cout, kernel=3, stride=1, groups=1, act=None, norm=nn.BatchNorm2d):
    layers = [nn.Conv2d(cin, cout, kernel, stride, kernel // 2, groups=groups, bias=False), norm(cout)]
    return nn.Sequential(*layers, *([act()] if act else []))


# --- residual networks ----------------------------------------------------------------------------


class BasicBlock(nn.Module):
    def __init__(self, cin, cout, stride, norm):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = norm(cout)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = norm(cout)
        self.downsample = None
        if stride != 1 or cin != cout:
            self.downsample = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), norm(cout))

    def forward(self, x):
        shortcut = self.downsample(x) if self.downsample is not None else x
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.bn2(self.conv2(x))
        x += shortcut
        return self.relu(x)


class ResNet(nn.Module):
    def __init__(self, norm=nn.BatchNorm2d):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, 1, 1, bias=False)
        self.bn1 = norm(8)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = nn.Sequential(BasicBlock(8, 8, 1, norm), BasicBlock(8, 8, 1, norm))
        self.layer2 = nn.Sequential(BasicBlock(8, 16, 2, norm), BasicBlock(16, 16, 1, norm))
        self.layer3 = nn.Sequential(BasicBlock(16, 24, 2, norm))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(24, CLASSES)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(torch.flatten(self.avgpool(x), 1))


# --- mobile networks ------------------------------------------------------------------------------


class SqueezeExcite(nn.Module):
    def __init__(self, channels, act, gate):
        super().__init__()
        self.fc1 = nn.Conv2d(channels, channels // 4, 1)
        self.fc2 = nn.Conv2d(channels // 4, channels, 1)
        self.act, self.gate = act(), gate()

    def forward(self, x):
        scale = F.adaptive_avg_pool2d(x, 1)
        return x * self.gate(self.fc2(self.act(self.fc1(scale))))


class StochasticDepth(nn.Module):
    def forward(self, x):
        if not self.training:
            return x
        keep = torch.empty((x.shape[0], 1, 1, 1), device=x.device).bernoulli_(0.8)
        return x * keep / 0.8


class InvertedResidual(nn.Module):
    def __init__(self, cin, cout, stride, act, gate):
        super().__init__()
        wide = cin * 4
        self.block = nn.Sequential(
            conv_norm(cin, wide, 1, act=act), conv_norm(wide, wide, 3, stride, groups=wide, act=act),
            SqueezeExcite(wide, act if act is nn.SiLU else nn.ReLU, gate), conv_norm(wide, cout, 1))
        self.stochastic_depth = StochasticDepth()
        self.adds = stride == 1 and cin == cout

    def forward(self, x):
        result = self.block(x)
        return self.stochastic_depth(result) + x if self.adds else result


def hardswish():
    return nn.Hardswish(inplace=True)


class MobileNet(nn.Module):
    def __init__(self, act=hardswish, gate=nn.Hardsigmoid):
        super().__init__()
        self.features = nn.Sequential(
            conv_norm(3, 8, 3, 2, act=act), InvertedResidual(8, 8, 1, act, gate),
            InvertedResidual(8, 16, 2, act, gate), InvertedResidual(16, 16, 1, act, gate),
            conv_norm(16, 32, 1, act=act))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Linear(32, 24), act(), nn.Dropout(0.2),
                                        nn.Linear(24, CLASSES))

    def forward(self, x):
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


# --- without batch normalisation -------------------------------------------------------------------


class LayerNorm2d(nn.LayerNorm):
    def forward(self, x):
        x = x.permute(0, 2, 3, 1)
        return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps).permute(0, 3, 1, 2)


class ConvNextBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.dwconv = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels, eps=1e-6)
        self.pwconv1 = nn.Linear(channels, 4 * channels)
        self.pwconv2 = nn.Linear(4 * channels, channels)
        self.gamma = nn.Parameter(0.5 * torch.ones(channels))

    def forward(self, x):
        y = self.dwconv(x).permute(0, 2, 3, 1)
        y = self.gamma * self.pwconv2(F.gelu(self.pwconv1(self.norm(y))))
        return x + y.permute(0, 3, 1, 2)


class ConvNext(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 4, 4), LayerNorm2d(8))
        self.stages = nn.ModuleList([
            nn.Sequential(ConvNextBlock(8), ConvNextBlock(8)),
            nn.Sequential(LayerNorm2d(8), nn.Conv2d(8, 16, 2, 2), ConvNextBlock(16))])
        self.norm = nn.LayerNorm(16)
        self.head = nn.Linear(16, CLASSES)

    def forward(self, x):
        x = self.stem(x)
        for stage in self.stages:
            x = stage(x)
        return self.head(self.norm(x.mean([-2, -1])))


class ViTBlock(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Dropout(0.1), nn.Linear(2 * dim, dim))

    def attend(self, x):
        count, tokens, dim = x.shape
        qkv = self.qkv(x).reshape(count, tokens, 3, self.heads, dim // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        x = F.scaled_dot_product_attention(q, k, v)
        return self.proj(x.transpose(1, 2).reshape(count, tokens, dim))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.patch_embed = nn.Conv2d(3, dim, 8, 8)
        self.cls_token = nn.Parameter(0.1 * torch.randn(1, 1, dim))
        self.pos_embed = nn.Parameter(0.1 * torch.randn(1, 17, dim))
        self.blocks = nn.Sequential(*[ViTBlock(dim, 4) for _ in range(3)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, CLASSES)

    def forward(self, x):
        x = self.patch_embed(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], dim=1) + self.pos_embed
        return self.head(self.norm(self.blocks(x))[:, 0])


class WindowBlock(nn.Module):
    """Attention within windows of 4 x 4, shifted or not, with a bias by relative place."""

    def __init__(self, dim, heads, shift):
        super().__init__()
        self.window, self.heads, self.shift = 4, heads, shift
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.relative_position_bias_table = nn.Parameter(0.2 * torch.randn(49, heads))
        place = torch.stack(torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij")).flatten(1)
        relative = (place[:, :, None] - place[:, None, :]).permute(1, 2, 0) + 3
        self.register_buffer("relative_position_index", relative[..., 0] * 7 + relative[..., 1])
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def windows(self, x):
        count, h, w, dim = x.shape
        x = x.view(count, h // 4, 4, w // 4, 4, dim).permute(0, 1, 3, 2, 4, 5)
        return x.reshape(-1, 16, dim)

    def forward(self, x):
        count, h, w, dim = x.shape
        y = self.norm1(x)
        if self.shift:
            y = torch.roll(y, (-self.shift, -self.shift), (1, 2))
        y = self.windows(y)
        q, k, v = self.qkv(y).reshape(y.shape[0], 16, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q = q * (dim // self.heads) ** -0.5
        scores = q @ k.transpose(-2, -1)
        bias = self.relative_position_bias_table[self.relative_position_index.view(-1)]
        scores = scores + bias.view(16, 16, -1).permute(2, 0, 1).unsqueeze(0)
        if self.shift:
            region = x.new_zeros((h, w))
            number = 0
            for rows in ((0, -4), (-4, -self.shift), (-self.shift, None)):
                for columns in ((0, -4), (-4, -self.shift), (-self.shift, None)):
                    region[rows[0]:rows[1], columns[0]:columns[1]] = number
                    number += 1
            region = self.windows(region[None, :, :, None]).squeeze(-1)
            mask = region.unsqueeze(1) - region.unsqueeze(2)
            mask = mask.masked_fill(mask != 0, float("-inf")).masked_fill(mask == 0, 0.0)
            n = mask.shape[0]
            scores = scores.view(y.shape[0] // n, n, self.heads, 16, 16) + mask[None, :, None]
            scores = scores.view(-1, self.heads, 16, 16)
        y = self.proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(y.shape[0], 16, dim))
        y = y.view(count, h // 4, w // 4, 4, 4, dim).permute(0, 1, 3, 2, 4, 5).reshape(count, h, w, dim)
        if self.shift:
            y = torch.roll(y, (self.shift, self.shift), (1, 2))
        x = x + y
        return x + self.mlp(self.norm2(x))


class PatchMerging(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(4 * dim)
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)

    def forward(self, x):
        parts = [x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]]
        return self.reduction(self.norm(torch.cat(parts, -1)))


class Swin(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Conv2d(3, 12, 2, 2)
        self.layers = nn.ModuleList([
            nn.Sequential(WindowBlock(12, 2, 0), WindowBlock(12, 2, 2)),
            nn.Sequential(PatchMerging(12), WindowBlock(24, 4, 0), WindowBlock(24, 4, 2))])
        self.norm = nn.LayerNorm(24)
        self.head = nn.Linear(24, CLASSES)

    def forward(self, x):
        x = self.embed(x).permute(0, 2, 3, 1)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x).mean([1, 2]))


class Odd(nn.Module):
    """What the families above leave out."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, 2, 1)
        self.plain_norm = nn.BatchNorm2d(8, affine=False, eps=1e-3)
        self.mha = nn.MultiheadAttention(8, 2, batch_first=True)
        self.row_norm = nn.BatchNorm1d(16)
        self.mix = nn.Linear(8, 8, bias=False)
        self.tied = nn.Linear(8, 8, bias=False)
        self.tied.weight = self.mix.weight
        self.unused = nn.Linear(8, 3)
        self.register_buffer("shift", torch.tensor([0.5, -0.25, 0.125]).view(1, 3, 1, 1), persistent=False)
        self.fc = nn.Linear(16, CLASSES)

    def forward(self, x):
        x.mul_(2)
        count = x.shape[0]
        x = self.plain_norm(self.conv(x + self.shift))
        x = F.interpolate(x, size=(8, 8), mode="bilinear", align_corners=False)
        x = x.view(count, 8, 64).transpose(1, 2)
        x = x + self.mha(x, x, x, need_weights=False)[0]
        x = self.tied(torch.tanh(self.mix(x)))
        first, second = x.split(32, dim=1)
        third, fourth = torch.chunk(first * 2, 2, dim=1)
        x = torch.cat([third + fourth, second[:, :16]], dim=2)
        places = torch.arange(16, device=x.device, dtype=x.dtype) / 16 + torch.zeros(count, 1, 16)
        x = x + places * torch.full((1,), 0.5) + torch.tensor(0.1)
        x = x / count * (count * 3 // 3 + 0)
        x = self.row_norm(x.mean(1))
        return self.fc(x.clamp(min=-3) + torch.var(x, dim=1, keepdim=True))


class Shortcuts(nn.Module):
    """Sums behind norms: three that one pass over the maps can do, and others that it must not."""

    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(3 if i == 0 else 6, 6, 3, 1, 1, bias=False) for i in range(8)])
        self.norms = nn.ModuleList([nn.BatchNorm2d(6) for _ in range(8)])
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.other_pool = nn.MaxPool2d(3, 2, 1, ceil_mode=True)
        self.fc = nn.Linear(6, CLASSES)

    def forward(self, x):
        def branch(i, x):
            return self.norms[i](self.convs[i](x))

        x = self.other_pool(self.maxpool(F.relu(branch(0, x))))
        x = F.relu(branch(1, x) + branch(2, x))  # joined: either could wait
        y = branch(3, x)
        y += x  # joined, without a relu
        z = torch.add(branch(4, y), y, alpha=0.5) * 0.75
        kept = z * 1
        z += branch(5, kept)  # what is written to is not the norm's
        z = z + self.norms[6](z).mean((2, 3), keepdim=True)  # another size
        w = self.convs[7](z)
        seen_twice = self.norms[7](w)
        z = F.relu(seen_twice + z) + seen_twice.tanh() + w
        z = F.relu(z + branch(6, z))  # joined, the norm being the second
        return self.fc(z.mean((2, 3)))


class NotTensors(nn.Module):
    def forward(self, x):
        return x.mean([2, 3])


class HalfWeights(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, CLASSES).half()

    def forward(self, x):
        return F.linear(x.mean([2, 3]), self.fc.weight.float(), self.fc.bias.float())


NETWORKS = {
    "resnet": ResNet,
    "mobilenet": MobileNet,
    "efficientnet": lambda: MobileNet(nn.SiLU, nn.Sigmoid),
    "convnext": ConvNext,
    "vit": ViT,
    "swin": Swin,
    "group_resnet": lambda: ResNet(lambda channels: nn.GroupNorm(4, channels)),
    "odd": Odd,
    "shortcuts": Shortcuts,
}


def make(name):
    torch.manual_seed(sum(map(ord, name)))
    model = NETWORKS[name]()
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.running_mean.normal_(0, 0.3)
            module.running_var.uniform_(0.5, 2)
        if getattr(module, "weight", None) is not None and "Norm" in type(module).__name__:
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, 0, 0.2)
    for name, parameter in model.named_parameters():
        if name.startswith(("fc.weight", "head.weight", "classifier")) and parameter.dim() == 2:
            nn.init.normal_(parameter, 0, 0.6)
    return model.eval()
