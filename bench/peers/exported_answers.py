#!/usr/bin/env python3
"""Whether PyTorch gives the classes that `gala adapt --select none --predictions ANSWERS.csv` gave.

    exported_answers.py NET.pt2 ANSWERS.csv [--short 256]

The network is the file's own, run by torch.export; the pictures are those that the CSV names,
resized and cropped by PIL as for ImageNet. Needs Python 3.10 with numpy, pillow and torch. Ends
with 1 where an answer differs.
"""
import argparse
import csv
import json
import sys

import numpy as np
import torch
from PIL import Image


def picture(path, short, size):
    """A picture as torchvision's usual evaluation has it: short side, middle, 0 to 1."""
    image = Image.open(path).convert("RGB")
    scale = short / min(image.size)
    wide, high = (int(side * scale) if side != min(image.size) else short for side in image.size)
    image = image.resize((wide, high), Image.BILINEAR)
    left, top = round((wide - size) / 2), round((high - size) / 2)
    pixels = np.asarray(image.crop((left, top, left + size, top + size)))
    return torch.from_numpy(pixels.copy()).permute(2, 0, 1).float() / 255


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network")
    parser.add_argument("answers")
    parser.add_argument("--short", type=int, default=256, help="the short side before the crop")
    arguments = parser.parse_args()
    extra = {"gala.json": ""}
    network = torch.export.load(arguments.network, extra_files=extra).module()
    preprocessing = json.loads(extra["gala.json"])["preprocessing"]
    mean, std = (torch.tensor(preprocessing[name]).view(3, 1, 1) for name in ("mean", "std"))
    with open(arguments.answers, newline="") as file:
        rows = list(csv.DictReader(file))
    same = right = 0
    gap = 0.0
    for first in range(0, len(rows), 20):
        part = rows[first:first + 20]
        images = torch.stack([picture(row["file"], arguments.short, preprocessing["size"])
                              for row in part])
        with torch.no_grad():
            sure, classes = torch.softmax(network((images - mean) / std), 1).max(1)
        for row, confidence, number in zip(part, sure.tolist(), classes.tolist(), strict=True):
            right += number == int(row.get("label") or -1)
            if number == int(row["prediction"]):
                same += 1
                gap = max(gap, abs(confidence - float(row["confidence"])))
    print(json.dumps({"pictures": len(rows), "same_class": same, "right": right,
                      "confidence_gap": gap}))
    return same != len(rows)


if __name__ == "__main__":
    sys.exit(main())
