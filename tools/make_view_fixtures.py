"""Writes batches of images and what the view `augment` shows of them, by PyTorch.

usage: make_view_fixtures.py FOLDER        (a Python with torch)

FOLDER is made anew. cases.json is a list; each case has the spec as `gala` spells it, the preprocessing, what
was drawn, and images before and after in double precision. Every step of the published transform is written
here as a tensor operation on the whole batch: the padded picture is made, grid_sample places it, conv2d
blurs it. It shares nothing with the library.
"""

import argparse
import json
import math
import pathlib
import shutil

import torch
import torch.nn.functional as F

NEUTRAL = {"order": [0, 1, 2, 3, 4], "brightness": 1.0, "contrast": 1.0, "saturation": 1.0, "hue": 0.0,
           "gamma": 1.0, "angle": 0.0, "scale": 1.0, "shift_x": 0.0, "shift_y": 0.0, "sigma": 0.001,
           "flip": False}
PLAIN = {"mean": [0, 0, 0], "std": [1, 1, 1], "size": 32, "interpolation": "bilinear", "channels": "rgb"}
IMAGENET = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225], "size": 32,
            "interpolation": "bilinear", "channels": "rgb"}
BGR = {"mean": [0.1, 0.3, 0.6], "std": [0.2, 0.5, 0.9], "size": 32, "interpolation": "bilinear",
       "channels": "bgr"}


def grey(x):
    weights = torch.tensor([0.2989, 0.587, 0.114], dtype=x.dtype)
    return torch.einsum("nchw,c->nhw", x, weights).unsqueeze(1)


def mix(x, other, factor):
    return (factor * x + (1 - factor) * other).clamp(0, 1)


def brightness(x, drawn):
    return mix(x, torch.zeros_like(x), drawn["brightness"])


def contrast(x, drawn):
    return mix(x, grey(x).mean(dim=(1, 2, 3), keepdim=True), drawn["contrast"])


def saturation(x, drawn):
    return mix(x, grey(x), drawn["saturation"])


def hue(x, drawn):
    """To HSV and back, by the sector of the cone that the hue lies in."""
    r, g, b = x.unbind(1)
    value, least = x.amax(1), x.amin(1)
    chroma = value - least
    safe = torch.where(chroma == 0, torch.ones_like(chroma), chroma)
    sixth = torch.where(value == r, ((g - b) / safe) % 6,
                        torch.where(value == g, (b - r) / safe + 2, (r - g) / safe + 4))
    turned = ((sixth / 6 + drawn["hue"]) % 1) * 6
    part = chroma * (1 - (turned % 2 - 1).abs())
    zero = torch.zeros_like(part)
    sectors = [(chroma, part, zero), (part, chroma, zero), (zero, chroma, part),
               (zero, part, chroma), (part, zero, chroma), (chroma, zero, part)]
    result = torch.zeros_like(x)
    for number, sector in enumerate(sectors):
        inside = (turned.floor().long() % 6 == number).unsqueeze(1)
        result = torch.where(inside, torch.stack(sector, 1), result)
    return result + least.unsqueeze(1)


def gamma(x, drawn):
    return x.clamp(1e-8, 1).pow(drawn["gamma"]).clamp(0, 1)


TURNS = [brightness, contrast, saturation, hue, gamma]


def padded(x, mode):
    height, width = x.shape[2] // 2, x.shape[3] // 2
    return F.pad(x, (width, width, height, height), mode={"edge": "replicate"}.get(mode, mode))


def placed(x, drawn):
    """Turned clockwise about the middle, scaled, shifted; black outside, and dimmed twice at the frame."""
    height, width = x.shape[2:]
    right = round(drawn["shift_x"] * width / 16)
    down = round(drawn["shift_y"] * height / 16)
    turn = math.radians(drawn["angle"])
    y, x_axis = torch.meshgrid(torch.arange(height, dtype=x.dtype) - (height - 1) / 2 - down,
                               torch.arange(width, dtype=x.dtype) - (width - 1) / 2 - right,
                               indexing="ij")
    from_x = (math.cos(turn) * x_axis + math.sin(turn) * y) / drawn["scale"]
    from_y = (-math.sin(turn) * x_axis + math.cos(turn) * y) / drawn["scale"]
    grid = torch.stack((from_x / (width / 2), from_y / (height / 2)), -1).expand(len(x), -1, -1, -1)
    both = F.grid_sample(torch.cat((x, torch.ones_like(x[:, :1])), 1), grid, mode="bilinear",
                         padding_mode="zeros", align_corners=False)
    return both[:, :3] * both[:, 3:]


def blurred(x, drawn):
    row = torch.exp(-0.5 * (torch.arange(-2, 3, dtype=x.dtype) / drawn["sigma"]) ** 2)
    row = row / row.sum()
    kernel = torch.outer(row, row).expand(3, 1, 5, 5)
    return F.conv2d(F.pad(x, (2, 2, 2, 2), mode="reflect"), kernel, groups=3)


def cropped(x, height, width):
    top, left = (x.shape[2] - height) // 2, (x.shape[3] - width) // 2
    return x[:, :, top:top + height, left:left + width]


def augmented(x, drawn, padding, blur):
    """Pixels from 0 to 1, red first."""
    height, width = x.shape[2:]
    x = x.clamp(0, 1)
    for number in drawn["order"]:
        x = TURNS[number](x, drawn)
    x = placed(padded(x, padding), drawn)
    if blur:
        x = blurred(x, drawn)
    x = cropped(x, height, width)
    return (x.flip(3) if drawn["flip"] else x).clamp(0, 1)


def make_case(what, pixels, drawn, preprocessing=PLAIN, padding="edge", blur=True):
    drawn = {**NEUTRAL, **drawn}
    in_order = (lambda x: x.flip(1)) if preprocessing["channels"] == "bgr" else (lambda x: x)
    column = {key: torch.tensor(preprocessing[key], dtype=torch.float64).view(1, 3, 1, 1)
              for key in ("mean", "std")}

    def finished(x):
        return (in_order(x) - column["mean"]) / column["std"]

    return {
        "what": what,
        "spec": f"augment:padding={padding},blur={'yes' if blur else 'no'},noise=0",
        "preprocessing": preprocessing,
        "drawn": drawn,
        "sizes": list(pixels.shape),
        "images": finished(pixels).flatten().tolist(),
        "result": finished(augmented(pixels, drawn, padding, blur)).flatten().tolist(),
    }


def random_draw(generator):
    def uniform(low, high):
        return low + (high - low) * torch.rand((), generator=generator, dtype=torch.float64).item()

    return {
        "order": torch.randperm(5, generator=generator).tolist(),
        "brightness": uniform(0.6, 1.4), "contrast": uniform(0.7, 1.3), "saturation": uniform(0.5, 1.5),
        "hue": uniform(-0.06, 0.06), "gamma": uniform(0.7, 1.3), "angle": uniform(-15, 15),
        "scale": uniform(0.9, 1.1), "shift_x": uniform(-1, 1), "shift_y": uniform(-1, 1),
        "sigma": uniform(0.001, 0.5), "flip": uniform(0, 1) < 0.5}


def make_cases():
    generator = torch.Generator().manual_seed(5)

    def pixels(height, width, count=2):
        # A little outside 0 .. 1 too, and with greys.
        x = torch.rand(count, 3, height, width, generator=generator, dtype=torch.float64) * 1.1 - 0.05
        x[:, :, 0, :3] = 0.4
        return x

    for name, values in {"brightness": (0.6, 1.4), "contrast": (0.7, 1.3), "saturation": (0.5, 1.5),
                         "hue": (-0.06, 0.06, -0.5, 0.5), "gamma": (0.7, 1.3)}.items():
        for value in values:
            yield make_case(f"{name} {value}", pixels(8, 8), {name: value}, blur=False)
    for padding in ("edge", "reflect"):
        for drawn in ({"angle": 15.0}, {"angle": -7.5, "scale": 0.9}, {"scale": 1.1},
                      {"shift_x": 1.0, "shift_y": -0.6}, {"angle": 10.0, "flip": True},
                      {"angle": 40.0, "scale": 0.4}):  # the last one looks beyond the padding
            yield make_case(f"placed, {padding}, {drawn}", pixels(12, 12), drawn, padding=padding, blur=False)
    for sigma in (0.001, 0.3, 0.5, 3.0):
        yield make_case(f"sigma {sigma}", pixels(9, 9), {"sigma": sigma})
    for index, (height, width) in enumerate([(32, 32), (8, 8), (7, 7), (3, 3), (2, 2), (10, 6), (5, 32)] * 2):
        for preprocessing in (PLAIN, IMAGENET, BGR):
            yield make_case(f"all of it, {height} x {width}", pixels(height, width, 1 + index % 2),
                            random_draw(generator), preprocessing,
                            padding=("edge", "reflect")[index % 2], blur=index % 3 != 1)
    for _ in range(20):
        yield make_case("in any order", pixels(6, 6), random_draw(generator))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "cases.json").write_text(json.dumps(list(make_cases())), encoding="utf-8")


if __name__ == "__main__":
    main()
