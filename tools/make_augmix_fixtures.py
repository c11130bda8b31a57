#!/usr/bin/env python3
"""Makes tests/data/fixtures/augmix_*.npy: what PIL makes of a picture by the changes of AugMix.

Needs pillow and numpy. Run from the top of the source tree: tools/make_augmix_fixtures.py
"""
import numpy as np
from PIL import Image, ImageOps

from make_image_fixtures import FOLDER, picture


def save(name, image):
    np.save(FOLDER / f"augmix_{name}.npy", np.asarray(image))


def affine(image, *data):
    return image.transform(image.size, Image.AFFINE, data, resample=Image.BILINEAR)


def main():
    # Narrow histograms, so that contrast and equalisation have something to do.
    image = Image.fromarray(picture(24, 32, 8) // 2 + 40)
    save("source", image)
    save("autocontrast", ImageOps.autocontrast(image))
    save("equalize", ImageOps.equalize(image))
    for bits in (3, 4):
        save(f"posterize_{bits}", ImageOps.posterize(image, bits))
    for threshold in (256, 180, 100):
        save(f"solarize_{threshold}", ImageOps.solarize(image, threshold))
    for degrees in (7, -9):
        save(f"rotate_{degrees}", image.rotate(degrees, resample=Image.BILINEAR))
    save("shear_x_0.08", affine(image, 1, 0.08, 0, 0, 1, 0))
    save("shear_y_-0.05", affine(image, 1, 0, 0, -0.05, 1, 0))
    save("translate_x_3", affine(image, 1, 0, 3, 0, 1, 0))
    save("translate_y_-2", affine(image, 1, 0, 0, 0, 1, -2))


if __name__ == "__main__":
    main()
