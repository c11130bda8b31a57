#!/usr/bin/env python3
"""Writes ImageNet weights that packages carry as safetensors files with gala's metadata.

  convert_imagenet_weights.py resnet18 STATE_DICT.pkl OUT.safetensors
  convert_imagenet_weights.py resnet50 PACKAGE_FOLDER OUT.safetensors

resnet18: a plain pickle of torchvision's state dict, read by an unpickler that knows tensors and
nothing else, so nothing in the file is executed.
resnet50: a TensorFlow.js layers model of Keras' ResNet50 (ResNet50/model.json, its shards, and
assets/labels.json). tools/get-data fetches both. Needs Python 3.8 and numpy.
"""
import collections
import io
import json
import pathlib
import pickle
import struct
import sys

import numpy as np

MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)


def preprocessing(mean):
    return {"mean": list(mean), "std": list(STD), "size": 224, "interpolation": "bilinear", "channels": "rgb"}


def write_safetensors(path, tensors, metadata):
    """tensors: name -> array, written as little-endian float32 in this order."""
    header = {"__metadata__": {"format": "pt", "gala": json.dumps(metadata, separators=(",", ":"))}}
    begin = 0
    for name, values in tensors.items():
        end = begin + 4 * values.size
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [begin, end]}
        begin = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for values in tensors.values():
            file.write(np.ascontiguousarray(values, dtype="<f4").tobytes())


# ResNet-18: pickled tensors.

STORAGE_TYPES = {"FloatStorage": "<f4", "LongStorage": "<i8"}


class StorageUnpickler(pickle.Unpickler):
    """Reads one storage as torch.save wrote it before zip files: what stands for it is its type."""

    def find_class(self, module, name):
        if module == "torch" and name in STORAGE_TYPES:
            return STORAGE_TYPES[name]
        raise pickle.UnpicklingError(f"{module}.{name} has no place in a storage")

    def persistent_load(self, identifier):
        kind, dtype, _key, _location, count = identifier[:5]
        if kind != "storage":
            raise pickle.UnpicklingError(f"a {kind} has no place in a storage")
        return dtype, count


def load_storage(data):
    stream = io.BytesIO(data)
    for _ in range(3):  # magic number, protocol version, machine
        StorageUnpickler(stream).load()
    dtype, count = StorageUnpickler(stream).load()
    StorageUnpickler(stream).load()  # keys
    (stored,) = struct.unpack("<q", stream.read(8))
    values = np.frombuffer(stream.read(), dtype=dtype)
    if not stored == count == values.size:
        raise pickle.UnpicklingError("a storage of another length than it says")
    return values


def rebuild_tensor(storage, offset, shape, stride, *_):
    strides = [step * storage.itemsize for step in stride]
    end = offset + 1 + sum((size - 1) * step for size, step in zip(shape, stride))
    if offset < 0 or min(stride, default=0) < 0 or end > storage.size:
        raise pickle.UnpicklingError("a tensor reaches beyond its storage")
    return np.lib.stride_tricks.as_strided(storage[offset:], shape, strides)


class StateDictUnpickler(pickle.Unpickler):
    KNOWN = {
        ("collections", "OrderedDict"): collections.OrderedDict,
        ("torch._utils", "_rebuild_tensor_v2"): rebuild_tensor,
        ("torch.storage", "_load_from_bytes"): load_storage,
    }

    def find_class(self, module, name):
        if (module, name) not in self.KNOWN:
            raise pickle.UnpicklingError(f"{module}.{name} has no place in a state dict")
        return self.KNOWN[module, name]


def convert_resnet18(source, target):
    with open(source, "rb") as file:
        state = StateDictUnpickler(file).load()
    tensors = {name: values for name, values in state.items() if not name.endswith("num_batches_tracked")}
    write_safetensors(target, tensors, {"model": "resnet18:classes=1000", "preprocessing": preprocessing(MEAN)})


# ResNet-50: Keras' layout.

KERAS_MEAN = (123.68, 116.779, 103.939)  # of red, green, blue, 0 .. 255
KERAS_EPSILON = 1e-3


def read_keras(folder):
    """name -> array, from the shards in the manifest's order."""
    folder = pathlib.Path(folder) / "ResNet50"
    (group,) = json.loads((folder / "model.json").read_text())["weightsManifest"]
    data = b"".join((folder / path).read_bytes() for path in group["paths"])
    tensors, begin = {}, 0
    for entry in group["weights"]:
        assert entry["dtype"] == "float32", entry
        count = int(np.prod(entry["shape"]))
        tensors[entry["name"]] = np.frombuffer(data, "<f4", count, begin).reshape(entry["shape"])
        begin += 4 * count
    assert begin == len(data), "the shards hold more than the manifest says"
    return tensors


def blocks():
    """(Keras' stage and block, our name of it) for all sixteen."""
    for stage, count in zip((2, 3, 4, 5), (3, 4, 6, 3)):
        for block in range(count):
            yield f"{stage}{'abcdef'[block]}", f"layer{stage - 1}.{block}"


def convolution_norm(keras, convolution, norm):
    """Kernel [out, in, height, width] and the norm's four vectors, in double precision. The bias goes
    into the running mean: (x + bias) - mean is x - (mean - bias)."""
    kernel = keras[convolution + "/kernel"].astype(np.float64).transpose(3, 2, 0, 1)
    vectors = {name: keras[f"{norm}/{name}"].astype(np.float64)
               for name in ("gamma", "beta", "moving_mean", "moving_variance")}
    return kernel, {"weight": vectors["gamma"], "bias": vectors["beta"],
                    "running_mean": vectors["moving_mean"] - keras[convolution + "/bias"],
                    "running_var": vectors["moving_variance"]}


def to_unit_scale(kernel, norm):
    """Keras feeds BGR from 0 to 255 less the mean, we feed RGB divided by 255 and by std too. What that
    takes from the input goes into the kernel, whose values would then be 57 times larger than what any
    recipe for training expects; so all of it is divided by the mean factor again, and the statistics of
    the norm with it. Where the variance is so small that epsilon counts, the norm's weight makes up
    for it: the network's answers stay the same."""
    factors = 255 * np.array(STD)
    unit = factors.mean()
    kernel = kernel[:, ::-1] * (factors / unit)[:, None, None]
    variance = norm["running_var"] / unit**2
    weight = norm["weight"] * unit * np.sqrt((variance + KERAS_EPSILON) / (norm["running_var"] + KERAS_EPSILON))
    return kernel, dict(norm, weight=weight, running_mean=norm["running_mean"] / unit, running_var=variance)


def convert_resnet50(source, target):
    keras = read_keras(source)
    tensors = {}

    def add(convolution_name, norm_name, kernel, norm):
        tensors[convolution_name + ".weight"] = kernel
        for name, values in norm.items():
            tensors[f"{norm_name}.{name}"] = values

    add("conv1", "bn1", *to_unit_scale(*convolution_norm(keras, "conv1", "bn_conv1")))
    for theirs, ours in blocks():
        for i, branch in enumerate("abc", start=1):
            name = f"{theirs}_branch2{branch}"
            add(f"{ours}.conv{i}", f"{ours}.bn{i}", *convolution_norm(keras, "res" + name, "bn" + name))
        if theirs.endswith("a"):
            name = f"{theirs}_branch1"
            add(f"{ours}.downsample.0", f"{ours}.downsample.1", *convolution_norm(keras, "res" + name, "bn" + name))
    tensors["fc.weight"] = keras["fc1000/kernel"].T
    tensors["fc.bias"] = keras["fc1000/bias"]
    labels = json.loads((pathlib.Path(source) / "assets" / "labels.json").read_text())
    write_safetensors(target, tensors, {
        "model": "resnet50:classes=1000,stride=first,norm_epsilon=0.001",
        "preprocessing": preprocessing(value / 255 for value in KERAS_MEAN),
        "classes": [labels[str(i)] for i in range(1000)]})


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ("resnet18", "resnet50"):
        sys.exit(__doc__)
    {"resnet18": convert_resnet18, "resnet50": convert_resnet50}[sys.argv[1]](*sys.argv[2:])
