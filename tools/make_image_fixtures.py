#!/usr/bin/env python3
"""Makes the picture files of tests/data/fixtures, each with what PIL reads from it as a .npy array.

Needs pillow and numpy. Run from the top of the source tree: tools/make_image_fixtures.py
"""
import io
import pathlib
import struct
import zlib

import numpy as np
from PIL import Image, ImageEnhance

FOLDER = pathlib.Path("tests/data/fixtures")


def picture(height, width, seed=0):
    """Smooth colour with an edge and some noise, uint8 RGB."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(float)
    planes = [128 + 100 * np.sin(x / 5 + c) * np.cos(y / (4 + c)) for c in range(3)]
    values = np.stack(planes, -1) + rng.normal(0, 12, (height, width, 3))
    values[height // 2 :, : width // 3] = (250, 20, 120)
    return values.clip(0, 255).astype(np.uint8)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def pack_rows(samples, depth):
    """Rows of samples (height x width x channels) as PNG scan lines with filter 0."""
    height = samples.shape[0]
    rows = samples.reshape(height, -1)
    if depth == 16:
        packed = rows.astype(">u2").view(np.uint8).reshape(height, -1)
    elif depth == 8:
        packed = rows.astype(np.uint8)
    else:
        bits = ((rows[..., None] >> np.arange(depth - 1, -1, -1)) & 1).astype(np.uint8)
        packed = np.packbits(bits.reshape(height, -1), axis=1)
    return b"".join(b"\0" + row.tobytes() for row in packed)


def png(samples, depth, colour, extra=b"", interlaced=False):
    """A PNG file of integer samples, written by hand: PIL cannot write all of these."""
    height, width = samples.shape[:2]
    if interlaced:
        passes = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
        parts = [samples[y::dy, x::dx] for y, x, dy, dx in passes]
        data = b"".join(pack_rows(part, depth) for part in parts if part.size)
    else:
        data = pack_rows(samples, depth)
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, int(interlaced))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra + chunk(b"IDAT", zlib.compress(data, 9))
            + chunk(b"IEND", b""))


def save(name, data, expected=None):
    (FOLDER / name).write_bytes(data)
    if expected is None:
        expected = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
    np.save(FOLDER / (name + ".npy"), expected)


def jpeg(image, **options):
    out = io.BytesIO()
    image.save(out, "JPEG", **options)
    return out.getvalue()


def make_jpegs():
    rgb = Image.fromarray(picture(21, 35))
    save("rgb_420.jpg", jpeg(rgb, quality=85, subsampling=2))
    save("rgb_422.jpg", jpeg(rgb, quality=85, subsampling=1))
    save("rgb_444.jpg", jpeg(rgb, quality=92, subsampling=0))
    save("progressive.jpg", jpeg(rgb, quality=80, progressive=True))
    save("grey.jpg", jpeg(rgb.convert("L"), quality=85))
    cmyk = np.concatenate([255 - picture(21, 35), picture(21, 35, 5)[..., :1] // 2], -1)
    save("cmyk.jpg", jpeg(Image.fromarray(cmyk, "CMYK"), quality=90))


def make_pngs():
    rgb = picture(13, 19).astype(int)
    grey = rgb[..., :1]
    rng = np.random.default_rng(3)
    alpha = rng.integers(0, 256, grey.shape)
    low = rng.integers(0, 256, rgb.shape)
    palette = chunk(b"PLTE", rng.integers(0, 256, 48).astype(np.uint8).tobytes())
    transparent = chunk(b"tRNS", bytes([0, 50, 100, 150]))
    save("rgb8.png", png(rgb, 8, 2))
    save("rgb8_interlaced.png", png(rgb, 8, 2, interlaced=True))
    save("rgb16.png", png(rgb * 256 + low, 16, 2))
    save("rgba8.png", png(np.concatenate([rgb, alpha], -1), 8, 6))
    save("grey8.png", png(grey, 8, 0))
    save("grey_alpha8.png", png(np.concatenate([grey, alpha], -1), 8, 4))
    save("grey1.png", png(grey // 128, 1, 0))
    save("grey4_interlaced.png", png(grey // 16, 4, 0, interlaced=True))
    save("palette4.png", png(grey // 16, 4, 3, palette))
    save("palette2_transparent.png", png(grey // 64, 2, 3, palette + transparent))
    # PIL clips 16-bit grey at 255; the upper byte is what every other depth keeps.
    save("grey16.png", png(grey * 256 + low[..., :1], 16, 0), np.repeat(grey, 3, -1).astype(np.uint8))


def make_resizes():
    # Pillow resizes rows first; from version 12 or 13 on columns first where that is cheaper, which
    # moves a level here and there.
    source = picture(47, 61, 9)
    np.save(FOLDER / "resize_source.npy", source)
    filters = {"nearest": Image.NEAREST, "box": Image.BOX, "bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC}
    for name, width, height in [("bilinear", 32, 32), ("bilinear", 70, 20), ("bilinear", 61, 30), ("bilinear", 7, 47),
                                ("bicubic", 32, 32), ("bicubic", 80, 50), ("nearest", 33, 80), ("box", 16, 20)]:
        resized = Image.fromarray(source).resize((width, height), filters[name])
        np.save(FOLDER / f"resize_{name}_{width}x{height}.npy", np.asarray(resized))


def make_colours():
    source = picture(12, 16, 4)
    image = Image.fromarray(source)
    np.save(FOLDER / "colour_source.npy", source)
    enhancers = {"brightness": ImageEnhance.Brightness, "contrast": ImageEnhance.Contrast, "saturation": ImageEnhance.Color}
    for name, factor in [("brightness", 0.7), ("brightness", 1.3), ("contrast", 0.75), ("contrast", 1.25),
                         ("saturation", 0.7), ("saturation", 1.3)]:
        np.save(FOLDER / f"colour_{name}_{factor}.npy", np.asarray(enhancers[name](image).enhance(factor)))
    for turn in [0.3, -0.2]:
        hsv = np.array(image.convert("HSV"))
        # Adding to an 8-bit hue wraps around, as in torchvision.
        hsv[..., 0] = (hsv[..., 0].astype(int) + int(turn * 255)) % 256
        np.save(FOLDER / f"colour_hue_{turn}.npy", np.asarray(Image.fromarray(hsv, "HSV").convert("RGB")))
    np.save(FOLDER / "colour_grey.npy", np.asarray(image.convert("L").convert("RGB")))


def make_batch():
    save("batch.png", png(picture(3, 1024, 6).astype(int), 8, 2))


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    make_jpegs()
    make_pngs()
    make_resizes()
    make_colours()
    make_batch()
