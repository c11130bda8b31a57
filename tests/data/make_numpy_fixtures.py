"""Writes NumPy's legacy shuffles and DomainBed's splits into FOLDER/numpy.json, and arrays that
np.save made, for the tests of gala/data."""
import hashlib
import json
import pathlib
import sys

import numpy as np


def seed_hash(*arguments):
    return int(hashlib.md5(str(arguments).encode("utf-8")).hexdigest(), 16) % 2**31


def shuffled(size, seed):
    keys = list(range(size))
    np.random.RandomState(seed).shuffle(keys)
    return keys


folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
shuffles = [{"seed": seed, "keys": shuffled(size, seed)}
            for size in [0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 255, 256, 257, 1000, 1670, 2048, 4097]
            for seed in [0, 1, 2, 42, 12345, 2**31 - 1, 2**32 - 1]]
splits = []
for size in [5, 9, 10, 14, 15, 1670, 2048, 2344, 3929]:
    for trial in [0, 1, 2, 10, 11, 12, 123456]:
        for environment in range(4):
            keys = shuffled(size, seed_hash(trial, environment))
            held = int(size * 0.2)
            splits.append({"size": size, "trial": trial, "environment": environment, "out": keys[:held], "in": keys[held:]})
(folder / "numpy.json").write_text(json.dumps({"shuffles": shuffles, "splits": splits}))

for kind in ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]:
    np.save(folder / f"{kind}.npy", np.array([0, 1, 100, 7], dtype=kind))
np.save(folder / "f4.npy", np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5))
pictures = np.random.RandomState(3).randint(0, 256, size=(7, 5, 6, 3))
np.save(folder / "pictures.npy", pictures.astype(np.uint8))
np.save(folder / "pictures_fortran.npy", np.asfortranarray(pictures.astype(np.uint8)))
planes = (pictures / 255).transpose(0, 3, 1, 2).astype(np.float16)  # the same number in every type
for kind in ["<f2", "<f4", "<f8", ">f2", ">f4", ">f8"]:
    name = ("little" if kind[0] == "<" else "big") + kind[1:]
    np.save(folder / f"planes_{name}.npy", np.ascontiguousarray(planes.astype(kind)))
    np.save(folder / f"planes_{name}_fortran.npy", np.asfortranarray(planes.astype(kind)))
for kind in [">i2", ">u4", ">i8", "?", "<f2", "<f4", ">f8"]:
    np.save(folder / f"labels_{kind[-2:].strip('?') or 'bool'}.npy", np.array([0, 1, 1, 0], dtype=kind))
np.save(folder / "halves.npy", np.array([0, 1.5]))
np.save(folder / "scalar.npy", np.float64(3))
