"""AugMix as MEMO draws its looks: gala/view/augmix.cpp, operation by operation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

_CHAINS, _DEEPEST, _LEVELS = 3, 3, 256


@dataclass
class _Changes:
    """The changes of all chains at one place in them, each number [chains]."""

    cosine: Tensor
    skew_x: Tensor
    skew_y: Tensor
    turn: Tensor
    shift_x: Tensor
    shift_y: Tensor
    stretch: Tensor
    equalize: Tensor
    threshold: Tensor
    coarse: Tensor


@dataclass
class _Places:
    """Where the pixels of a picture are read, [chains, pixels]."""

    inside: Tensor
    corners: list[list[Tensor]]
    right: Tensor
    lower: Tensor


def _places(by: _Changes, height: int, width: int) -> _Places:
    device, real = by.cosine.device, torch.double
    x = (torch.arange(width, dtype=real, device=device) + 0.5).view(1, 1, width)
    y = (torch.arange(height, dtype=real, device=device) + 0.5).view(1, height, 1)
    about_x = by.turn * (by.cosine * (-width / 2) + by.skew_x * (-height / 2) + width / 2)
    about_y = by.turn * (by.skew_y * (-width / 2) + by.cosine * (-height / 2) + height / 2)
    shift_x = about_x + (by.shift_x * (width / 3) / 10).trunc()
    shift_y = about_y + (by.shift_y * (height / 3) / 10).trunc()

    def mapped(of_x: Tensor, of_y: Tensor, shift: Tensor) -> Tensor:
        wide = [each.view(-1, 1, 1) for each in (of_x, of_y, shift)]
        return (wide[0] * x + wide[1] * y + wide[2]).flatten(1)

    from_x = mapped(by.cosine, by.skew_x, shift_x)
    from_y = mapped(by.skew_y, by.cosine, shift_y)
    inside = from_x.ge(0).logical_and(from_x.lt(width))
    inside = inside.logical_and(from_y.ge(0)).logical_and(from_y.lt(height))
    left, top = (from_x - 0.5).floor(), (from_y - 0.5).floor()
    rows = [(top + below).clamp(0, height - 1) for below in (0, 1)]
    columns = [(left + beside).clamp(0, width - 1) for beside in (0, 1)]
    corners = [[(row * width + column).long() for column in columns] for row in rows]
    return _Places(inside, corners, from_x - 0.5 - left, from_y - 0.5 - top)


def _spread(by_pixel: Tensor) -> Tensor:
    return by_pixel.unsqueeze(1).unsqueeze(1)


def _warped(pictures: Tensor, places: _Places, outside: Tensor) -> Tensor:
    def across(below: int) -> Tensor:
        left, right = (
            pictures.gather(3, _spread(corner).expand(pictures.shape)).double()
            for corner in places.corners[below]
        )
        return left + (right - left) * _spread(places.right)

    upper = across(0)
    value = upper + (across(1) - upper) * _spread(places.lower)
    return torch.where(_spread(places.inside), value.long(), outside.view(1, 1, 3, 1))


def _histogram(levels: Tensor) -> Tensor:
    rows = levels.shape[0]
    first = torch.arange(rows, device=levels.device).mul(_LEVELS).unsqueeze(1)
    index = (levels + first).flatten()
    counts = torch.zeros(rows * _LEVELS, dtype=torch.long, device=levels.device)
    return counts.scatter_add(0, index, torch.ones_like(index)).view(rows, _LEVELS)


def _highest(counts: Tensor) -> Tensor:
    return _LEVELS - 1 - counts.gt(0).int().flip(1).argmax(1, keepdim=True)


def _stretched(counts: Tensor, level: Tensor) -> Tensor:
    low = counts.gt(0).int().argmax(1, keepdim=True)
    high = _highest(counts)
    most = torch.full((), 255.0, dtype=torch.double, device=level.device)
    scale = most / (high - low).clamp_min(1).double()
    offset = -low.double() * scale
    table = (level * scale + offset).trunc().clamp(0, _LEVELS - 1).long()
    return torch.where(high.gt(low), table, level)


def _equalized(counts: Tensor, level: Tensor) -> Tensor:
    last = counts.gather(1, _highest(counts))
    step = (counts.sum(1, keepdim=True) - last).div(255, rounding_mode="floor")
    below = counts.cumsum(1) - counts + step.div(2, rounding_mode="floor")
    table = below.div(step.clamp_min(1), rounding_mode="floor").clamp_max(255)
    return torch.where(step.gt(0), table, level)


def _releveled(pictures: Tensor, by: _Changes) -> Tensor:
    chains, flat = pictures.shape[0], pictures.flatten(0, 2)
    counts = _histogram(flat)
    level = torch.arange(_LEVELS, device=flat.device).unsqueeze(0)

    def by_row(numbers: Tensor) -> Tensor:
        return numbers.unsqueeze(1).expand(chains, flat.shape[0] // chains).reshape(-1, 1)

    coarse = by_row(by.coarse).long()
    table = torch.where(level.ge(by_row(by.threshold)), _LEVELS - 1 - level, level)
    table = table.div(coarse, rounding_mode="floor") * coarse
    table = torch.where(by_row(by.stretch).gt(0), _stretched(counts, level), table)
    table = torch.where(by_row(by.equalize).gt(0), _equalized(counts, level), table)
    return table.gather(1, flat).view(pictures.shape)


def _cropped(levels: Tensor, numbers: Tensor) -> Tensor:
    def along(side: int, drawn: Tensor) -> Tensor:
        room = side // 8
        return (drawn * float(2 * room + 1)).floor().clamp_max(2.0 * room).long() - room

    height, width = levels.shape[2:]
    row = torch.arange(height, device=levels.device)
    column = torch.arange(width, device=levels.device)
    from_y = row + along(height, numbers[1])
    from_x = torch.where(numbers[2].gt(0), width - 1 - column, column) + along(width, numbers[0])
    inside_y = from_y.ge(0).logical_and(from_y.lt(height))
    inside_x = from_x.ge(0).logical_and(from_x.lt(width))
    moved = levels.index_select(2, from_y.clamp(0, height - 1))
    moved = moved.index_select(3, from_x.clamp(0, width - 1))
    return moved * inside_y.unsqueeze(1).logical_and(inside_x)


@torch.no_grad()
def augmixed(
    images: Tensor, drawn: Sequence[float], mean: Sequence[float], std: Sequence[float]
) -> Tensor:
    """Return what the view shows of preprocessed images [N, 3, H, W] for these numbers."""
    if images.shape[0] == 0:
        return torch.empty_like(images)
    like = {"dtype": torch.double, "device": images.device}
    numbers = torch.tensor(drawn, **like)  # type: ignore[arg-type]
    middle, deviation = (
        torch.tensor(each, **like).view(1, 3, 1, 1)  # type: ignore[arg-type]
        for each in (mean, std)
    )
    outside = torch.tensor([128, 0, 0], device=images.device)
    exact = (images.double() * deviation + middle) * 255
    levels = exact.nan_to_num(0).round().clamp(0, 255).long()
    picture = _cropped(levels.contiguous(), numbers)
    weights = numbers[4 : 4 + _CHAINS]
    changes = numbers[4 + _CHAINS :].view(_CHAINS, _DEEPEST, -1)
    height, width = images.shape[2:]
    chains = picture.flatten(2).unsqueeze(0).repeat(_CHAINS, 1, 1, 1)
    for step in range(_DEEPEST):
        by = _Changes(*changes[:, step].unbind(1))
        chains = _releveled(_warped(chains, _places(by, height, width), outside), by)
    mixed = (chains.double() * weights.view(-1, 1, 1, 1)).sum(0).view_as(picture)
    pixels = picture * numbers[3] + mixed * (1 - numbers[3])
    broken = torch.isfinite(exact).flatten(1).all(1).logical_not()
    result = ((pixels / 255 - middle) / deviation).masked_fill(
        broken.view(-1, 1, 1, 1), float("nan")
    )
    last = images.is_contiguous(memory_format=torch.channels_last) and not images.is_contiguous()
    layout = torch.channels_last if last else torch.contiguous_format
    return result.float().contiguous(memory_format=layout)
