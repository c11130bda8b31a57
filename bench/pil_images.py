#!/usr/bin/env python3
"""Times PIL and NumPy at what gala_bench_image times: decode, resize to 224 x 224, normalise.

    pil_images.py FOLDER [COUNT [PIXELS.npy]]

One core, processor time, the same JSON line. With the PIXELS.npy that gala_bench_image wrote, also
prints the largest difference of a level.
"""
import json
import os
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from PIL import Image

ENDINGS = (".jpg", ".jpeg", ".png")
MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32)
STD = np.array([0.229, 0.224, 0.225], dtype=np.float32)


def find(folder):
    return [os.path.join(place, name) for place, _, names in sorted(os.walk(folder))
            for name in sorted(names) if name.lower().endswith(ENDINGS)]


def resized(path):
    return Image.open(path).convert("RGB").resize((224, 224), Image.BILINEAR)


def prepare(path):
    values = np.asarray(resized(path), dtype=np.float32) / 255
    return np.ascontiguousarray(((values - MEAN) / STD).transpose(2, 0, 1))


paths = find(sys.argv[1])[:int(sys.argv[2]) if len(sys.argv) > 2 else 1000]
for _ in range(2):
    begin = time.process_time()
    for path in paths:
        prepare(path)
    seconds = time.process_time() - begin
line = {"images": len(paths), "milliseconds_per_image": round(1e3 * seconds / len(paths), 4),
        "images_per_second": round(len(paths) / seconds, 1)}
if len(sys.argv) > 3:
    ours = np.load(sys.argv[3], mmap_mode="r")
    differences = [np.abs(np.asarray(resized(path)).astype(int) - ours[i]) for i, path in enumerate(paths)]
    line["largest_difference"] = int(max(d.max() for d in differences))
    line["values_that_differ"] = round(float(np.mean([np.mean(d > 0) for d in differences])), 6)
print(json.dumps(line))
