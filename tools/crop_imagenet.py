#!/usr/bin/env python3
"""Crops pictures as ImageNet-C's were: short side 256, the middle 224x224.

    crop_imagenet.py FOLDER OUT [--quality Q]      class folders again, of small files: JPEG of quality Q
                                                   without loss of colour resolution, PNG without --quality
    crop_imagenet.py FOLDER OUT.png --rows COUNT   the first COUNT, one a row of a PNG, for the benchmarks

Pictures come in order of their files' names. gala does the same to pictures while it reads them; small files
are for machines to which a link is thin. Needs numpy and pillow.
"""
import argparse
import concurrent.futures
import pathlib
import sys

import numpy as np
from PIL import Image

ENDINGS = {".jpg", ".jpeg", ".png"}
SIDE, SHORT_SIDE = 224, 256


def crop(path):
    picture = Image.open(path).convert("RGB")
    shorter = min(picture.size)
    width, height = (SHORT_SIDE * length // shorter for length in picture.size)
    picture = picture.resize((width, height), Image.BILINEAR)
    left, top = round((width - SIDE) / 2), round((height - SIDE) / 2)
    return picture.crop((left, top, left + SIDE, top + SIDE))


def write_cropped(source, path, out, quality):
    target = (out / path.relative_to(source)).with_suffix(".png" if quality is None else ".jpg")
    target.parent.mkdir(parents=True, exist_ok=True)
    if quality is None:
        crop(path).save(target, optimize=True)
    else:
        crop(path).save(target, quality=quality, subsampling=0, optimize=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--quality", type=int)
    parser.add_argument("--rows", type=int)
    flags = parser.parse_args()
    files = sorted((path for path in flags.folder.rglob("*") if path.suffix.lower() in ENDINGS),
                   key=lambda path: path.name)
    if not files:
        sys.exit(f"{flags.folder}: holds no JPEG or PNG files")
    if flags.rows:
        rows = [np.asarray(crop(path)).reshape(-1, 3) for path in files[:flags.rows]]
        Image.fromarray(np.stack(rows)).save(flags.out)
        return
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for _ in pool.map(lambda path: write_cropped(flags.folder, path, flags.out, flags.quality), files):
            pass


if __name__ == "__main__":
    main()
