#!/usr/bin/env python3
"""Times the published Python corruptions as gala_bench_corruption times ours.

    published_corruptions.py REPOSITORY IMAGES.png [COUNT]

REPOSITORY is a checkout of hendrycks/robustness. Its functions are loaded from
ImageNet-C/create_c/make_cifar_c.py or, for rows of 224x224 images, make_imagenet_c.py; calls that newer libraries renamed are put right on the way.
One core, severity 5, processor time, the same JSON lines.
"""
import json
import math
import os
import pathlib
import sys
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MAGICK_THREAD_LIMIT"):
    os.environ[variable] = "1"

import cv2
import numpy as np
from PIL import Image

NAMES = ("gaussian_noise shot_noise impulse_noise defocus_blur glass_blur motion_blur zoom_blur snow frost fog "
         "brightness contrast elastic_transform pixelate jpeg_compression").split()
RENAMED = (("multichannel=True", "channel_axis=-1"), ("np.float_)", "np.float64)"), ("np.fromstring", "np.frombuffer"),
           ("scipy.ndimage.interpolation", "scipy.ndimage"), (", mode='L')", ")"))


def load_functions(folder, side):
    script = folder / ("make_cifar_c.py" if side == 32 else "make_imagenet_c.py")
    source = script.read_text()
    begin = source.index("import skimage")
    source = source[begin:source.index("End Distortions")]
    for old, new in RENAMED:
        source = source.replace(old, new)
    names = {"np": np, "Image": Image}
    exec(compile(source + "\n", str(script), "exec"), names)
    return names


def report(name, images, seconds):
    print(json.dumps({"corruption": name, "images": images,
                      "milliseconds_per_image": round(1e3 * seconds / images, 4),
                      "images_per_second": round(images / seconds, 1)}), flush=True)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    picture = np.array(Image.open(sys.argv[2]).convert("RGB"))
    count = min(int(sys.argv[3]) if len(sys.argv) > 3 else 1000, len(picture))
    side = math.isqrt(picture.shape[1])
    if side not in (32, 224):
        sys.exit(f"{sys.argv[2]}: expected a width of 1024 or 50176 pixels, one image a row")
    images = [Image.fromarray(row.reshape(side, side, 3)) for row in picture[:count]]
    cv2.setNumThreads(1)
    folder = pathlib.Path(sys.argv[1]) / "ImageNet-C/create_c"
    functions = load_functions(folder, side)
    os.chdir(folder)  # frost reads its photographs from the working directory
    total = 0.0
    for name in NAMES:
        begin = time.process_time()
        for image in images:
            np.uint8(functions[name](image, 5))
        seconds = time.process_time() - begin
        report(name, count, seconds)
        total += seconds
    report("all", count * len(NAMES), total)


if __name__ == "__main__":
    main()
